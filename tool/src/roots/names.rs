//! What names say of methods: whose they are, and whether they tell anything.

use super::held::Held;
use crate::pattern::JDK_PACKAGES;

/// Packages of what programs are made of, rather than of programs. Only the order of what holds about as much depends on it.
const LIBRARIES: [&str; 27] = [
    "org.apache.",
    "org.springframework.",
    "org.hibernate.",
    "org.eclipse.",
    "org.glassfish.",
    "org.jboss.",
    "io.netty.",
    "io.undertow.",
    "io.vertx.",
    "io.micronaut.",
    "io.quarkus.",
    "com.fasterxml.",
    "com.google.",
    "com.zaxxer.",
    "org.h2.",
    "org.hsqldb.",
    "org.postgresql.",
    "com.mysql.",
    "kotlin.",
    "kotlinx.",
    "scala.",
    "clojure.",
    "groovy.",
    "org.codehaus.",
    "org.bouncycastle.",
    "akka.",
    "reactor.",
];
/// Names of methods that say nothing of what they do.
const SAY_NOTHING: [&str; 12] =
    ["run", "doRun", "call", "doCall", "invoke", "apply", "accept", "get", "execute", "doFilter", "proceed", "main"];
/// What a method takes that calls whatever it is given, and so stands for nothing itself.
const FUNCTIONS: [&str; 8] = [
    "Ljava/lang/Runnable;",
    "Ljava/util/concurrent/Callable;",
    "Ljava/util/function/",
    "Ljava/security/Privileged",
    "Lkotlin/jvm/functions/",
    "Lscala/Function",
    "Lgroovy/lang/Closure;",
    "Lclojure/lang/IFn;",
];

/// How much less a method is worth for what its name says: who looks knows the program's own, and may know others'.
const UNKNOWN: f64 = 0.9;
const LIBRARY: f64 = 0.75;
const GENERIC: f64 = 0.75;
/// And one in which threads mostly wait for work.
const IDLE: f64 = 0.4;

/// Whose a method is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    /// The program's: of the package of its main class.
    Own,
    /// Of another package.
    Unknown,
    /// A well-known library's.
    Library,
}

/// What is known of a program by its names.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// What names of the program's own classes begin with.
    own: Option<String>,
}

impl Names {
    /// Of a program with such a main class, or a jar.
    pub(super) fn of(main: &str) -> Names {
        // A module's name may stand before it.
        let class = main.rsplit('/').next().unwrap_or(main);
        let Some((package, _)) = class.rsplit_once('.').filter(|_| !class.ends_with(".jar")) else {
            return Names::default();
        };
        // `com.acme.` is a program's, `com.` is everybody's.
        let parts: Vec<&str> = package.split('.').take(2).collect();
        let own = format!("{}.", parts.join("."));
        Names { own: (!is_of(&LIBRARIES, &own) && !is_of(&JDK_PACKAGES, &own)).then_some(own) }
    }

    pub(super) fn whose(&self, machine: &str) -> Whose {
        if self.own.as_ref().is_some_and(|own| machine.starts_with(own)) {
            Whose::Own
        } else if is_of(&LIBRARIES, machine) {
            Whose::Library
        } else {
            Whose::Unknown
        }
    }
}

fn is_of(packages: &[&str], machine: &str) -> bool {
    packages.iter().any(|package| machine.starts_with(package))
}

/// Whether a method's name does not say what it does: `run`, what a compiler has made, what calls the function that it is given.
pub(super) fn is_generic(machine: &str) -> bool {
    let (name, parameters) = machine.split_at(machine.find('(').unwrap_or(machine.len()));
    let (class, method) = name.rsplit_once('.').unwrap_or(("", name));
    let parameters = parameters.split(')').next().unwrap_or_default();
    if FUNCTIONS.iter().any(|function| parameters.contains(function)) {
        return true;
    }
    // Where a function is a class, its name is the class's: `work$step`, `Pipeline$step$1`.
    let class = class.rsplit('.').next().unwrap_or_default();
    let inner = class.rsplit('$').find(|part| !part.starts_with(|c: char| c.is_ascii_digit()));
    let is_function = class.contains('$') && inner.is_some_and(|part| part.starts_with(|c: char| c.is_lowercase()));
    let is_made = method.contains("lambda$") || method.starts_with("access$");
    is_made || SAY_NOTHING.contains(&method) && !is_function
}

/// What a method is worth by its name, and by what its threads do, against what it holds.
pub(super) fn worth(names: &Names, machine: &str, held: &Held) -> f64 {
    let whose = match names.whose(machine) {
        Whose::Own => 1.0,
        Whose::Unknown => UNKNOWN,
        Whose::Library => LIBRARY,
    };
    let generic = if is_generic(machine) { GENERIC } else { 1.0 };
    let idle = if held.is_idle() { IDLE } else { 1.0 };
    whose * generic * idle
}

/// Whether an exact profile would have a method in it: the JDK's it leaves alone unless it is told otherwise.
pub(super) fn gets_probes(machine: &str) -> bool {
    !machine.starts_with('[') && !is_of(&JDK_PACKAGES, machine)
}

/// Whether a method can be a root that people would name: not the JDK's, nor of a class that is made up while the program runs.
pub(super) fn could_be_named(machine: &str) -> bool {
    const MADE_UP: [&str; 7] =
        ["$$Lambda", "$Proxy", "LambdaForm", "$$SpringCGLIB", "$$EnhancerBy", "$ByteBuddy", "GeneratedMethodAccessor"];
    let name = machine.split('(').next().unwrap_or(machine);
    gets_probes(name)
        && !MADE_UP.iter().any(|part| name.contains(part))
        && !name.contains('/')
        && !name.ends_with("<clinit>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_up_at_run_time_is_no_root() {
        for name in ["com.acme.Shop.main([Ljava/lang/String;)V", "a.B$C.lambda$x$0()V", "org.x.Y.<init>()V"] {
            assert!(could_be_named(name), "{name}");
        }
        for name in [
            "java.lang.Thread.run()V",
            "a.B$$Lambda.0x0000/123.run()V",
            "jdk.proxy2.$Proxy7.m()V",
            "[JVM: GC Thread]",
            "a.B.<clinit>()V",
        ] {
            assert!(!could_be_named(name), "{name}");
        }
    }

    #[test]
    fn a_name_may_say_nothing() {
        for name in [
            "a.B.run()V",
            "a.B.lambda$total$0()V",
            "a.B$1.call()Ljava/lang/Object;",
            "a.Timer.time(Ljava/util/concurrent/Callable;)Ljava/lang/Object;",
            "a.B.access$total(La/B;)V",
        ] {
            assert!(is_generic(name), "{name}");
        }
        for name in [
            "a.B.total(Ljava/lang/String;)Ljava/lang/Runnable;",
            "work$step.invoke(Ljava/lang/Object;)Ljava/lang/Object;",
            "a.Pipeline$step$1.invoke()V",
            "a.B.channelRead0",
        ] {
            assert!(!is_generic(name), "{name}");
        }
    }

    #[test]
    fn the_packages_of_the_main_class_are_the_programs() {
        use Whose::{Library, Own, Unknown};
        let of = |main: &str| {
            let names = Names::of(main);
            ["com.acme.web.Api.get()V", "com.other.X.y()V", "org.apache.Y.z()V"].map(|machine| names.whose(machine))
        };
        assert_eq!(of("com.acme.shop.Main"), [Own, Unknown, Library]);
        for main in
            ["shop.jar", "org.apache.catalina.startup.Bootstrap", "Main", "", "jdk.compiler/com.sun.tools.javac.Main"]
        {
            assert_eq!(of(main), [Unknown, Unknown, Library], "{main}");
        }
    }
}
