//! Receivers of calls, handed out before the calls are made: whatever the arguments are, they are the same afterwards.

use headwater_rewriter::{CallKind, ClassFile, ProbeSite, Probes, Request, instrument};
use headwater_tests::{compile_text, jdks};

#[test]
fn a_call_is_told_what_it_is_made_on_and_gets_its_arguments() {
    // The last local variables of `many` are beyond what one byte names.
    let many: String = (0..260).map(|n| format!("int v{n} = n + {n}; ")).collect();
    let text = format!(
        "
        class Told {{
            static StringBuilder trace = new StringBuilder();
            static Object enter(int id) {{ return id; }}
            static void exit(Object token, int id) {{ if (!token.equals(id)) throw new Error(); }}
            static void thrown(Object token, int id) {{ exit(token, id); }}
            static void receiver(Object object, int id) {{
                if (object == null || object instanceof Main) trace.append(' ').append(object);
            }}
        }}
        interface Shape {{ String all(byte b, long l, Object o, double d, float f, int[] a, String s); int none(); }}
        class Main implements Shape {{
            final String name;
            Main(String name) {{ this.name = name; }}
            public String toString() {{ return name; }}
            public String all(byte b, long l, Object o, double d, float f, int[] a, String s) {{
                return name + b + l + o + d + f + a.length + s;
            }}
            public int none() {{ return 1; }}
            int one(int n) {{ return n; }}
            long wide(long n) {{ return n; }}
            static Main made(String name) {{ return new Main(name); }}
            static String calls(Shape shape, Main main) {{
                long sum = 3 + shape.none() * main.one(4) + made(\"m\").wide(5L);
                String text = 1 + shape.all((byte) 1, 2L, main, 4.5, 6.5f, new int[main.one(3)], shape.none() > 0 ? \"yes\" : \"no\");
                for (int i = 0; i < 2; i++) try {{ made(null).one(i / i); }} catch (ArithmeticException e) {{ main.one(9); }}
                Main nobody = null;
                try {{ nobody.wide(6L); }} catch (NullPointerException e) {{ text += \" null\"; }}
                return text + sum;
            }}
            static long many(int n) {{ {many} return made(\"many\").wide(v259) + new Main(\"x\").all((byte) v0, v1, \"o\", v2, v3, new int[1], \"s\").length(); }}
            public static void main(String[] args) {{
                System.out.println(calls(new Main(\"a\"), new Main(\"b\")) + many(7) + Told.trace);
            }}
        }}"
    );
    let probes = Probes { receiver: Some("receiver"), ..Probes::of_methods("Told") };
    for jdk in jdks() {
        let classes = compile_text(&jdk, &text);
        let file = classes.path().join("Main.class");
        let bytes = std::fs::read(&file).expect("a class file");
        let class = ClassFile::parse(&bytes).expect("javac's class files are sound");
        let mut requests = Vec::new();
        for method in class.methods().iter().filter(|method| ["calls", "many"].contains(&&*method.name())) {
            let sites = headwater_rewriter::call_sites(&class, method.index).expect("readable").calls;
            let virtuals = sites.iter().filter(|site| site.kind.is_virtual() && !site.kind.is_handle());
            requests.extend(virtuals.map(|site| Request {
                method_index: method.index,
                id: 70_000 + site.offset,
                place: ProbeSite::Receiver { offset: site.offset },
            }));
            requests.push(Request::method(method.index, 1));
            let made = sites.iter().find(|site| site.kind == CallKind::Static).expect("made");
            let place = ProbeSite::Receiver { offset: made.offset };
            requests.push(Request { method_index: method.index, id: 99, place });
        }
        let rewritten = instrument(&bytes, &probes, &requests).expect("readable");
        let refused: Vec<u32> = rewritten.refused.iter().map(|refused| refused.request.id).collect();
        assert_eq!(refused, [99, 99], "a static call is made on nothing");
        std::fs::write(&file, &rewritten.bytes).expect("a class file");
        let output = jdk.verifying().arg("-cp").arg(classes.path()).arg("Main").output();
        let output = output.expect("java starts");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            // The string's own calls are told too, and say nothing.
            "1a12b4.56.53yes null12279 a b m b a a b null null many x",
            "JDK {}: {}",
            jdk.version,
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
