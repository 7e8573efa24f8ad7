package shop;

import java.util.Map;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import zoo.Meter;

/** The endpoints. Spring finds the names of parameters by reflection. */
@RestController
public class Api {
    /** Something that is sent back. */
    public record Entry(String item, int amount) {}

    private final Meter meter = new Meter("totals");
    private final Totals totals;

    Api(Totals totals) {
        this.totals = totals;
    }

    @GetMapping("/totals/{town}")
    public Map<String, Object> totals(@PathVariable String town) throws Exception {
        return meter.time(() -> totals.of(town));
    }

    /** Nobody asks for this and the next before the profile is over. */
    @GetMapping("/late")
    public String late(@RequestParam String name, @RequestParam int times) {
        return name.repeat(times);
    }

    @PostMapping("/entry")
    public Entry entry(@RequestBody Entry entry) {
        return new Entry(entry.item(), entry.amount() + 1);
    }
}
