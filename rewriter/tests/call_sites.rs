//! What a method calls, by its instructions and by the method handles that bootstrap methods are given.

use headwater_rewriter::{CallKind, CallSites, ClassFile, call_sites, constant_sites};
use headwater_tests::{compile_text, jdks};

#[path = "support/assembly.rs"]
mod assembly;

use assembly::assembled;

fn sites(bytes: &[u8], method: &str) -> CallSites {
    let class = ClassFile::parse(bytes).expect("a sound class file");
    let index = class.methods().iter().find(|declared| declared.name() == method).expect("it is there").index;
    call_sites(&class, index).expect("a sound class file")
}

/// `kind owner.name`, each once, sorted.
fn called(sites: &CallSites) -> Vec<String> {
    let mut called: Vec<String> =
        sites.calls.iter().map(|call| format!("{:?} {}.{}", call.kind, call.owner, call.name)).collect();
    called.sort();
    called.dedup();
    called
}

fn has(sites: &CallSites, kind: CallKind, owner: &str, name: &str) -> bool {
    sites.calls.iter().any(|call| (call.kind, &*call.owner, &*call.name) == (kind, owner, name))
}

#[test]
fn every_kind_of_call_and_what_invokedynamic_is_given() {
    let source = "
        import java.util.*; import java.util.function.*;
        abstract class Sites {
            int field;
            static void own() { }
            void run(List<String> list, Sites other) {
                own(); other.hashCode(); list.size(); super.toString(); new StringBuilder();
                Runnable lambda = () -> own();
                Supplier<Object> constructor = StringBuilder::new;
                Function<String, Integer> virtual = String::length;
                Supplier<Integer> bound = list::size;
                String text = \"a\" + list + field;
                int[] copy = new int[1].clone();
            }
        }";
    let classes = compile_text(&jdks()[0], source);
    let bytes = std::fs::read(classes.file("Sites.class")).expect("a class file");
    let sites = sites(&bytes, "run");
    let by_constants = constant_sites(&ClassFile::parse(&bytes).expect("a sound class file")).expect("likewise");
    assert!(sites.types.iter().all(|class| by_constants.types.contains(class)), "{by_constants:#?}");
    assert!(sites.initialized.iter().all(|class| by_constants.initialized.contains(class)), "{by_constants:#?}");
    for (kind, owner, name) in [
        (CallKind::Static, "Sites", "own"),
        (CallKind::Virtual, "java/lang/Object", "hashCode"),
        (CallKind::Interface, "java/util/List", "size"),
        (CallKind::Special, "java/lang/Object", "toString"),
        (CallKind::Special, "java/lang/StringBuilder", "<init>"),
        (CallKind::HandleStatic, "Sites", "lambda$run$0"),
        (CallKind::HandleNew, "java/lang/StringBuilder", "<init>"),
        (CallKind::HandleVirtual, "java/lang/String", "length"),
        (CallKind::HandleInterface, "java/util/List", "size"),
    ] {
        assert!(has(&sites, kind, owner, name), "{kind:?} {owner}.{name} in {:#?}", called(&sites));
        assert!(has(&by_constants, kind, owner, name), "{kind:?} {owner}.{name} in {:#?}", called(&by_constants));
    }
    let lambdas = sites.dynamic.iter().filter(|site| &*site.bootstrap == "java/lang/invoke/LambdaMetafactory");
    assert!(lambdas.into_iter().any(|site| &*site.descriptor == "()Ljava/lang/Runnable;"), "{:#?}", sites.dynamic);
    assert!(!sites.calls.iter().any(|call| call.owner.starts_with('[')), "calls on arrays run nobody's code");
    assert!(sites.initialized.contains(&"java/lang/StringBuilder".to_owned()));
}

#[test]
fn what_is_stored_in_fields_and_arrays_is_kept() {
    let source = "
        class Stream extends java.io.FilterInputStream {
            Runnable own; Thread[] owns;
            Stream() { super(null); }
            void store(Other other) { own = null; owns = null; in = null; other.list = null; other.count = 1; }
            void keep(Thread other) { owns[0] = other; }
        }
        class Other { java.util.List<String> list; int count; }";
    let classes = compile_text(&jdks()[0], source);
    let bytes = std::fs::read(classes.file("Stream.class")).expect("a class file");
    let stores = sites(&bytes, "store");
    assert_eq!(stores.kept, ["java/lang/Runnable", "java/lang/Thread", "java/io/InputStream", "java/util/List"]);
    assert_eq!(sites(&bytes, "keep").kept, ["java/lang/Object"]);
}

#[test]
fn a_records_methods_mention_what_they_may_run() {
    const RECORDS: u32 = 17;
    for jdk in jdks().iter().filter(|jdk| jdk.version >= RECORDS) {
        let classes = compile_text(jdk, "record Point(int x, Thread y) { }");
        let bytes = std::fs::read(classes.file("Point.class")).expect("a class file");
        let sites = sites(&bytes, "hashCode");
        let methods = sites.dynamic.iter().any(|site| &*site.bootstrap == "java/lang/runtime/ObjectMethods");
        assert!(methods && sites.types.contains(&"Point".to_owned()), "{sites:#?}");
        assert!(sites.types.contains(&"java/lang/Thread".to_owned()), "what is in it is asked, too: {sites:#?}");
    }
}

/// Constants made of constants: as `ldc` of a dynamic constant whose bootstrap method is given another.
#[test]
fn dynamic_constants_are_followed_to_any_depth_and_each_once() {
    const DEPTH: usize = 200;
    let mut text = String::from(
        ".version 55 0\n.class public super Condy\n.super java/lang/Object\n\
         .method public static run : ()Ljava/lang/Object;\n.code stack 2 locals 0\n\
         ldc [c0]\npop\nldc [c0]\nareturn\n.end code\n.end method\n",
    );
    let bootstrap = "Bootstrap invokeStatic Method Condy make (Ljava/lang/invoke/MethodHandles$Lookup;Ljava/lang/String;\
                     Ljava/lang/Class;[Ljava/lang/Object;)Ljava/lang/Object;";
    for level in 0..DEPTH {
        // Both arguments are the next constant: followed naively, there would be 2^200 of them.
        let next = level + 1;
        text.push_str(&format!(
            ".const [c{level}] = Dynamic [bs:b{level}] name Ljava/lang/Object;\n\
             .bootstrap [bs:b{level}] = {bootstrap} [c{next}] [c{next}] :\n",
        ));
    }
    text.push_str(&format!(".const [c{DEPTH}] = MethodHandle invokeStatic Method Condy deep ()V\n.end class\n"));
    let classes = assembled("condy", &text);
    let sites = sites(&classes[0].1, "run");
    assert!(has(&sites, CallKind::HandleStatic, "Condy", "deep"), "{:#?}", called(&sites));
}

#[test]
fn lambdas_say_what_their_objects_implement_and_run() {
    let source = "
        import java.io.Serializable; import java.util.function.*;
        class Made {
            static final Function<String, Integer> LENGTH = String::length;
            Supplier<Object> constructor = StringBuilder::new;
            Runnable body = () -> run();
            IntSupplier serializable = (IntSupplier & Serializable) () -> 7;
            static void run() { String text = \"a\" + LENGTH + 5L; }
        }";
    let classes = compile_text(&jdks()[0], source);
    let bytes = std::fs::read(classes.file("Made.class")).expect("a class file");
    let class = ClassFile::parse(&bytes).expect("a sound class file");
    let lambdas = headwater_rewriter::lambdas(&class).expect("a sound class file");
    let mut found: Vec<String> = lambdas
        .iter()
        .map(|it| format!("{}.{} runs {:?} {}.{}", it.interface, it.name, it.body.kind, it.body.owner, it.body.name))
        .filter(|lambda| !lambda.contains("$deserializeLambda$"))
        .collect();
    found.sort();
    found.dedup();
    let expected = [
        "java/lang/Runnable.run runs HandleStatic Made.lambda$new$0",
        "java/util/function/Function.apply runs HandleVirtual java/lang/String.length",
        "java/util/function/IntSupplier.getAsInt runs HandleStatic Made.lambda$new$",
        "java/util/function/Supplier.get runs HandleNew java/lang/StringBuilder.<init>",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn what_generic_signatures_name_is_mentioned() {
    let source = "
        import java.util.*;
        class Sites<T extends Value> {
            Map<Key, ? super Value[]> map;
            Map<Other, Object> other;
            int sizes(Collection<? extends Outer<String>.Inner> them) { return them.size() + map.size(); }
            <B extends Bound> void bounded(B it) { }
        }
        class Key { } class Value { } class Other { } class Bound { } class Outer<T> { class Inner { } }";
    let classes = compile_text(&jdks()[0], source);
    let bytes = std::fs::read(classes.file("Sites.class")).expect("a class file");
    let sizes = sites(&bytes, "sizes");
    for class in ["Key", "Value", "Outer$Inner"] {
        assert!(sizes.types.iter().any(|it| it == class), "{class}: {:?}", sizes.types);
    }
    assert!(!sizes.types.iter().any(|it| it == "Other"), "that field is not used: {:?}", sizes.types);
    assert!(sites(&bytes, "bounded").types.iter().any(|it| it == "Bound"));
}
