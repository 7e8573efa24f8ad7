package shop;

import zoo.Clients;
import zoo.Http;
import zoo.Zoo;

/** Asks for towns' totals, and knows them. */
public class ShopClient {
    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        late("late-parameters", port, http -> Clients.expect("xyxyxy", http.get("/late?name=xy&times=3")));
        late("late-body", port, http -> Clients.expect("{\"item\":\"a\",\"amount\":2}", http.post("/entry", "{\"item\":\"a\",\"amount\":1}")));
        Clients.run(2, () -> {
            Http http = new Http(port);
            return n -> {
                int town = n % Shop.TOWNS;
                String answer = http.get("/totals/town" + town);
                String expected = "\"total\":" + total(town) + "}";
                if (!answer.endsWith(expected)) {
                    throw new IllegalStateException(answer + " instead of ..." + expected);
                }
            };
        });
    }

    private static int total(int town) {
        int total = 0;
        for (int c = town; c < Shop.CUSTOMERS; c += Shop.TOWNS) {
            for (int o = 0; o < Shop.ORDERS; o++) {
                int amount = o * 3 + c;
                total += amount > 10 ? amount : 0;
            }
        }
        return total;
    }

    private interface Late {
        void ask(Http http) throws Exception;
    }

    private static void late(String command, int port, Late late) {
        Zoo.onCommand(command, () -> {
            try (Http http = new Http(port)) {
                late.ask(http);
            } catch (Exception failure) {
                Zoo.wrong(command + ": " + failure);
            }
        });
    }
}
