//! What the runtime's classes name of the JDK is there, in every JDK: what is missing would be an error in the midst of somebody's
//! program, when the code that uses it runs for the first time.

use headwater_runtime_java::CLASSES;
use headwater_tests::{Jdk, Scratch, compile, java};

headwater_tests::trials! {
    each_jdk {
        all_that_the_runtime_names_is_there,
    }
}

/// The last one whose `Unsafe` has other names.
const FORMER_NAMES_UNTIL: u32 = 11;

fn all_that_the_runtime_names_is_there(jdk: &Jdk) {
    let target = compile(jdk, &["Linkage.java"]);
    let patch = Scratch::new("patch");
    std::fs::create_dir_all(patch.file("java/lang")).unwrap();
    for class in CLASSES {
        let bytes = if jdk.version <= FORMER_NAMES_UNTIL { class.with_former_names() } else { class.bytes.to_vec() };
        std::fs::write(patch.file(&format!("{}.class", class.name)), bytes).unwrap();
    }
    let patched = format!("--patch-module=java.base={}", patch.path().display());
    let names = CLASSES.map(|class| class.name);
    let linkage = java(jdk, &target, &[&patched], &[&["Linkage"], &names[..]].concat()).finish();
    assert!(linkage.status.success(), "JDK {}: {:?}", jdk.version, linkage.stderr);
    let [said] = &linkage.stdout[..] else { panic!("JDK {}: {:#?}", jdk.version, linkage.stdout) };
    let named: u32 = said.strip_prefix("NAMED ").and_then(|named| named.parse().ok()).expect("a number");
    assert!(named > 100, "JDK {}: {said}", jdk.version);
}
