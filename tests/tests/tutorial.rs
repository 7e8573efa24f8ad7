//! The program of docs/TUTORIAL.md: what the tutorial finds in it is there, and its fix takes it away.

use headwater_tests::{Jdk, Scratch, calls_by_method, compile, java, profile, read_report};

headwater_tests::trials! {
    each_jdk {
        the_cache_never_has_what_is_asked_for_until_it_is_fixed,
    }
}

const ORDERS: u64 = 60;
/// An order has so many lines, and each has a price.
const LINES: u64 = 12;
const WORKERS: u64 = 4;
/// Articles in currencies.
const PRICES: u64 = 3_000;

/// How often prices were asked for, and how often they were looked for in the list.
fn prices(jdk: &Jdk, sources: &[&str]) -> (u64, u64) {
    let classes = compile(jdk, sources);
    let mut target = java(jdk, &classes, &[], &["shop.Shop", &WORKERS.to_string()]);
    target.await_line("READY");
    let out = Scratch::new("tutorial");
    let file = out.file("shop.json");
    let orders = ORDERS.to_string();
    let arguments = ["--root", "shop.Shop::handle", "--calls", &orders, "-o", &file.to_string_lossy()];
    assert!(profile(&target, &arguments).finish().status.success());
    let calls = calls_by_method(&read_report(&file));
    assert_eq!(calls["shop.AuditLog.append(Ljava/lang/String;)V"], ORDERS);
    let found = calls.get("shop.PriceList.find(Lshop/PriceKey;)J").copied().unwrap_or(0);
    assert!(target.is_alive());
    assert!(target.finish().status.success());
    (calls["shop.PriceCache.cents(Lshop/PriceKey;)J"], found)
}

fn the_cache_never_has_what_is_asked_for_until_it_is_fixed(jdk: &Jdk) {
    let own = ["shop/Shop.java", "shop/PriceCache.java", "shop/PriceKey.java", "shop/AuditLog.java"];
    assert_eq!(prices(jdk, &own), (ORDERS * LINES, ORDERS * LINES), "JDK {}", jdk.version);
    let fixed = ["shop/Shop.java", "shop/PriceCache.java", "shop-fixed/PriceKey.java", "shop-fixed/AuditLog.java"];
    let (asked, found) = prices(jdk, &fixed);
    assert_eq!(asked, ORDERS * LINES);
    // Each worker may miss the same price once.
    assert!(found <= PRICES * WORKERS && found < asked, "JDK {}: {found} of {asked}", jdk.version);
}
