package shop;

import java.util.LinkedHashMap;
import java.util.Map;

/** Prices that were looked up before, the oldest forgotten first. */
final class PriceCache {
    private static final int CAPACITY = 5_000;
    private final PriceList list;
    private final Map<PriceKey, Long> known = new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<PriceKey, Long> eldest) {
            return size() > CAPACITY;
        }
    };

    PriceCache(PriceList list) {
        this.list = list;
    }

    long cents(PriceKey key) {
        Long cents;
        synchronized (known) {
            cents = known.get(key);
        }
        if (cents == null) {
            cents = list.find(key);
            synchronized (known) {
                known.put(key, cents);
            }
        }
        return cents;
    }
}
