//! Patterns as specifications: what matches what, and what is said of those that make no sense.

use super::*;

/// A method as `a/b/C.m(I)V`.
fn split(method: &str) -> (&str, &str, &str) {
    let (class, rest) = method.split_once('.').expect("a class");
    let (name, _) = rest.split_once('(').expect("a descriptor");
    (class, name, &rest[name.len()..])
}

#[test]
fn method_patterns_match_what_they_say() {
    let cases: &[(&str, &str, bool)] = &[
        ("a.b.C::m", "a/b/C.m()V", true),
        ("a.b.C.m", "a/b/C.m()V", true),
        ("a.b.C#m", "a/b/C.m(IJ)V", true),
        ("a/b/C.m", "a/b/C.m()V", true),
        (" a.b.C::m ", "a/b/C.m()V", true),
        ("a.b.C::m", "a/b/C.mm()V", false),
        ("a.b.C::m", "a/b/D.m()V", false),
        ("a.b.C::m", "x/a/b/C.m()V", false),
        ("a.b.C::m", "a/b/C$D.m()V", false),
        ("C::m", "C.m()V", true),
        ("C::m", "a/C.m()V", false),
        ("*::m", "a/b/C.m()V", true),
        ("*.C::m", "a/b/C.m()V", true),
        ("*.C::m", "C.m()V", true),
        ("*.C::m", "a/b/XC.m()V", false),
        ("a.*::get*", "a/b/c/D$E.getX()V", true),
        ("a.*.D::*", "a/b/c/D.x()V", true),
        ("a.*.D::*", "a/D.x()V", false),
        ("a.*Service::*", "a/b/OrderService.<init>()V", true),
        ("a.**::m", "a/b/C.m()V", true),
        ("a.b.Outer$Inner::m", "a/b/Outer$Inner.m()V", true),
        ("a.b.Outer.Inner::m", "a/b/Outer$Inner.m()V", true),
        ("a.b.Outer.Inner.m", "a/b/Outer$Inner.m()V", true),
        ("a.b.Outer$Inner::m", "a/b/Outer/Inner.m()V", false),
        ("a.b.C.<init>", "a/b/C.<init>()V", true),
        ("a.b.C::<clinit>", "a/b/C.<clinit>()V", true),
        ("a.b.C::<init>", "a/b/C.<clinit>()V", false),
        ("a.C::caf*", "a/C.café()V", true),
        ("a.C::m*n*o", "a/C.manyno()V", true),
        ("a.C::m*n*o", "a/C.many()V", false),
        ("a.C::lambda$m$0", "a/C.lambda$m$0()V", true),
        // Parameters in JVM form.
        ("a.C::m()", "a/C.m()V", true),
        ("a.C::m()", "a/C.m(I)V", false),
        ("a.C::m()V", "a/C.m()I", false),
        ("a.C::m(ILjava/lang/String;)", "a/C.m(ILjava/lang/String;)J", true),
        ("a.C::m(ILjava/lang/String;)V", "a/C.m(ILjava/lang/String;)J", false),
        ("a.C::m(ILjava.lang.String;)V", "a/C.m(ILjava/lang/String;)V", true),
        ("a.C::m([[J)[B", "a/C.m([[J)[B", true),
        ("a.C::m(I)", "a/C.m(II)V", false),
        // Parameters in Java form.
        ("a.C.m(int, java.lang.String, byte[])", "a/C.m(ILjava/lang/String;[B)V", true),
        ("a.C.m(int, String, byte[])", "a/C.m(ILjava/lang/String;[B)V", true),
        ("a.C.m(int,String,byte [ ] )", "a/C.m(ILjava/lang/String;[B)V", true),
        ("a.C.m(int, ring)", "a/C.m(ILjava/lang/String;)V", false),
        ("a.C.m(int)", "a/C.m(J)V", false),
        ("a.C.m(int)", "a/C.m(II)V", false),
        ("a.C.m(int)", "a/C.m([I)V", false),
        ("a.C.m(Object...)", "a/C.m([Ljava/lang/Object;)V", true),
        ("a.C.m(String fmt, Object... args)", "a/C.m(Ljava/lang/String;[Ljava/lang/Object;)V", true),
        ("a.C.m(final int count, int rest[])", "a/C.m(I[I)V", true),
        ("a.C.m(Map<String, List<?>>, int[][])", "a/C.m(Ljava/util/Map;[[I)V", true),
        ("a.C.m(Map.Entry)", "a/C.m(Ljava/util/Map$Entry;)V", true),
        ("a.C.m(Entry)", "a/C.m(Ljava/util/Map$Entry;)V", true),
        ("a.C.m(java.util.Map$Entry)", "a/C.m(Ljava/util/Map$Entry;)V", true),
        ("a.C.m(*, int)", "a/C.m([Ljava/lang/String;I)V", true),
        ("a.C.m(*, int)", "a/C.m(I)V", false),
        ("a.C.m(*)", "a/C.m(IJ)V", true),
        ("a.C.m(..)", "a/C.m()V", true),
    ];
    for &(pattern, method, expected) in cases {
        let (class, name, descriptor) = split(method);
        let parsed: MethodPattern = pattern.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parsed.matches(class, name, descriptor), expected, "{pattern} on {method}");
        assert_eq!(parsed.to_string(), pattern.trim());
    }
}

#[test]
fn patterns_give_their_parts() {
    let cases = [
        ("a.b.C::m(int)", "a.b.C", "m", true),
        ("a.b.C.m", "a.b.C", "m", true),
        ("a.*.C#get*", "a.*.C", "get*", false),
    ];
    for (pattern, class, method, exact) in cases {
        let parsed: MethodPattern = pattern.parse().expect("valid");
        assert_eq!((parsed.class_text(), parsed.method_text()), (class, method));
        assert_eq!(parsed.class_is_exact(), exact);
    }
}

#[test]
fn errors_say_where_and_why() {
    let cases = [
        ("", "the pattern is empty"),
        ("main", "`main` names no class; write `CLASS::main`, or `*::main`"),
        ("::m", "column 1: the class is missing"),
        ("a.C::", "column 6: the method is missing"),
        ("a.C.", "column 5: the method is missing"),
        ("a..C::m", "column 2: a package or class name is missing"),
        ("a.C.::m", "column 4: the class name is missing after this dot"),
        ("a b::m", "column 2: no class name has this character"),
        ("a.List<X>::m", "column 7: no class name"),
        ("a.C::x.y", "column 7: no method name has this character"),
        ("é.C::<int>", "column 6: the only names in angle brackets"),
        ("a.C::m(int", "column 7: this parenthesis is never closed"),
        ("a.C::m(int))", "column 11: a second parameter list begins or ends here"),
        ("a.C::m(int)Q", "column 12: what follows the list is no return type"),
        ("a.C::m(int)V", "column 8: this is followed by a return type in JVM form"),
        ("a.C::m(int,, long)", "column 12: this is no Java type"),
        ("a.C::m(int, a-!)", "column 13: this is no Java type"),
        ("a.C::m(List<X)", "column 8: this is no Java type"),
    ];
    for (pattern, expected) in cases {
        let error = pattern.parse::<MethodPattern>().expect_err(pattern).to_string();
        assert!(error.contains(expected), "{pattern}: {error}");
    }
    let error = "a.C::m(int)".parse::<ClassPattern>().expect_err("no parameters").to_string();
    assert!(error.contains("column 7: a filter selects classes and methods without"), "{error}");
}

#[test]
fn filters_match_packages_classes_and_methods() {
    let cases = [
        ("com.acme.**", "com/acme/a/b/C", true),
        ("com.acme.**", "com/acme/C", true),
        ("com.acme.**", "com/acmex/C", false),
        ("com.acme.*", "com/acme/C", true),
        ("com.acme.*", "com/acme/C$D", true),
        ("com.acme.*", "com/acme/a/C", false),
        ("com.acme.Foo", "com/acme/Foo", true),
        ("com.acme.Foo", "com/acme/Foo$Bar", false),
        ("com.acme.Foo$*", "com/acme/Foo$Bar", true),
        ("com.acme.Foo*", "com/acme/Foo$Bar", true),
        ("com.*.Foo", "com/acme/Foo", true),
        ("com.*.Foo", "com/acme/x/Foo", false),
        ("com.**.Foo", "com/acme/x/Foo", true),
        ("**.*Dao", "com/acme/x/FooDao", true),
        ("**.*Dao", "FooDao", true),
        ("**a.*b.c", "xa/b/a/bb/c", true),
        ("**", "X", true),
    ];
    for (pattern, class, expected) in cases {
        let parsed: ClassPattern = pattern.parse().expect("valid");
        assert_eq!(parsed.matches(class, "m"), expected, "{pattern} on {class}");
        assert_eq!(parsed.to_string(), pattern);
    }
    for (pattern, method, expected) in [
        ("com.acme.Foo::bar*", "barrier", true),
        ("com.acme.Foo#bar*", "foo", false),
        ("com.acme.*::<init>", "<init>", true),
    ] {
        let parsed: ClassPattern = pattern.parse().expect("valid");
        assert_eq!(parsed.matches("com/acme/Foo", method), expected, "{pattern} on {method}");
    }
}

#[test]
fn names_for_machines_and_for_people() {
    let cases = [
        ("a/b/C.m(ILjava/lang/String;)V", "a.b.C.m(ILjava/lang/String;)V", "a.b.C.m(int, String)"),
        ("C.<init>()V", "C.<init>()V", "C.<init>()"),
        ("a/O$I.m([[JLjava/util/Map$Entry;)Z", "a.O$I.m([[JLjava/util/Map$Entry;)Z", "a.O$I.m(long[][], Map$Entry)"),
        ("a/C.m(Q)V", "a.C.m(Q)V", "a.C.m(Q)V"),
    ];
    for (method, machine, people) in cases {
        let (class, name, descriptor) = split(method);
        assert_eq!(java_name(class, name, descriptor), machine);
        assert_eq!(display_name(class, name, descriptor), people);
    }
    for method in ["a/O$I.m([[JLjava/util/Map$Entry;)Z", "C.<init>()V", "a/b/C.m(ILjava/lang/String;)V"] {
        let (class, name, descriptor) = split(method);
        for shown in [java_name(class, name, descriptor), display_name(class, name, descriptor)] {
            let pattern: MethodPattern = shown.parse().expect("names that we show are patterns");
            assert!(pattern.matches(class, name, descriptor), "{shown}");
        }
    }
}

#[test]
fn a_lambdas_class_is_the_same_in_every_run_and_every_tools_file() {
    for name in [
        "a.B$$Lambda$14/0x0000000800c03000.run()V",
        "a.B$$Lambda$14.0x0000000800c03000.run()V",
        "a.B$$Lambda$14+0x0000000800c03000/1234.run()V",
        "a.B$$Lambda$14+0x0000000800c03000.1234.run()V",
        "a.B$$Lambda.0x0000000800c03000.run()V",
        "a.B$$Lambda+0x0000000800c03000.run()V",
        "a.B$$Lambda$14.run()V",
        "a.B$$Lambda$14/1234.run()V",
        "a.B$$Lambda.run()V",
    ] {
        assert_eq!(stable_name(name), "a.B$$Lambda.run()V", "{name}");
    }
    let form = "java.lang.invoke.LambdaForm$MH";
    assert_eq!(stable_name(&format!("{form}/0x0000000800c03000.invoke(LL)V")), format!("{form}.invoke(LL)V"));
    for name in
        ["a.B.m(I)V", "a.B$1.m()V", "a.$Proxy12.m", "memcpy", "libzip.so+0x1f", "a.B$$LambdaKit.m()", "[no stack]", ""]
    {
        assert_eq!(stable_name(name), name);
    }
}

#[test]
fn near_misses_are_found_by_typo_case_and_simple_name() {
    let candidates = [
        "com.acme.orders.OrderService",
        "com.acme.orders.Item",
        "com.acme.orders.OrderService.place(I)V",
        "com.acme.billing.Invoice",
        "com.acme.Main",
    ];
    let cases: &[(&str, &[&str])] = &[
        ("com.acme.orders.OrderServise", &["com.acme.orders.OrderService"]),
        ("OrderService", &["com.acme.orders.OrderService"]),
        ("orderservice", &["com.acme.orders.OrderService"]),
        ("com.acme.order.OrderService::plcae", &["com.acme.orders.OrderService.place(I)V"]),
        ("com.acme.Invoice", &["com.acme.billing.Invoice"]),
        ("main", &["com.acme.Main"]),
        ("com.acme.orders.Zebra", &[]),
        ("*", &[]),
    ];
    for (wanted, expected) in cases {
        assert_eq!(near_misses(wanted, candidates.into_iter(), 1), *expected, "{wanted}");
    }
    assert_eq!(near_misses("x", ["x", "x"].into_iter(), 5), ["x"]);
}
