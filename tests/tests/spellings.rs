//! Names that class files spell otherwise than UTF-8 does: with characters beyond U+FFFF, with U+0000, with surrogates that stand alone.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Launched, calls_by_method, profile_while_told};

headwater_tests::trials! {
    each_jdk {
        calls_are_counted_however_names_are_spelled,
        a_root_may_be_named_in_any_script,
    }
}

/// Its loader gives the classes `Beyond` and `Single` names of six bytes each, and some of their methods.
const PROGRAM: &str = r#"
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.function.IntSupplier;
class Main {
    public static void main(String[] args) throws Exception {
        var constructor = new Spelling().loadClass(Spelling.of("Beyond")).getDeclaredConstructor();
        constructor.setAccessible(true);
        IntSupplier beyond = (IntSupplier) constructor.newInstance();
        Class.forName("Start");
        System.out.println("READY");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        while (input.readLine() != null) System.out.println("RESULT " + Start.root(beyond));
    }
}
class Start {
    static int root(IntSupplier it) { return it.getAsInt(); }
}
class Beyond implements IntSupplier {
    public int getAsInt() {
        int sum = 0;
        for (int i = 0; i < 2; i++) sum += yonder(i);
        for (int i = 0; i < 3; i++) sum += naught(i);
        for (int i = 0; i < 4; i++) sum += higher(i);
        for (int i = 0; i < 5; i++) sum += lowest(i);
        for (int i = 0; i < 6; i++) sum += hi_low(i);
        return sum + new Single().yonder(1);
    }
    static int yonder(int i) { return i; }
    static int naught(int i) { return i; }
    static int higher(int i) { return i; }
    static int lowest(int i) { return i; }
    static int hi_low(int i) { IntSupplier it = () -> i; return it.getAsInt(); }
}
class Single {
    int yonder(int i) { return i; }
}
class Spelling extends ClassLoader {
    static final String[] CLASSES = {"Beyond", "Single"};
    static final String[][] NAMES = {
        {"Beyond", "\ud835\udcb3"}, {"Single", "\ud835\ud835"}, {"yonder", "\ud835\udcb4"}, {"naught", "\0\0\0"},
        {"higher", "\ud835\ud835"}, {"lowest", "\udcb3\udcb3"}, {"hi_low", "\udcb3\ud835"},
    };
    static String of(String text) {
        for (String[] name : NAMES) text = text.replace(name[0], name[1]);
        return text;
    }
    static byte[] spelled(byte[] bytes) throws IOException {
        String file = new String(bytes, StandardCharsets.ISO_8859_1);
        for (String[] name : NAMES) {
            ByteArrayOutputStream utf = new ByteArrayOutputStream();
            new DataOutputStream(utf).writeUTF(name[1]);
            file = file.replace(name[0], new String(utf.toByteArray(), 2, utf.size() - 2, StandardCharsets.ISO_8859_1));
        }
        return file.getBytes(StandardCharsets.ISO_8859_1);
    }
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        for (String plain : CLASSES) if (of(plain).equals(name)) return here(plain);
        return super.loadClass(name, resolve);
    }
    private synchronized Class<?> here(String plain) {
        Class<?> loaded = findLoadedClass(of(plain));
        if (loaded != null) return loaded;
        try (InputStream file = Main.class.getResourceAsStream(plain + ".class")) {
            byte[] bytes = spelled(file.readAllBytes());
            return defineClass(of(plain), bytes, 0, bytes.length);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
"#;

/// What stands for the lone surrogates U+D835 and U+DCB3.
const HIGH: char = '\u{10d835}';
const LOW: char = '\u{10dcb3}';

fn counted(jdk: &Jdk, root: &str) -> BTreeMap<String, u64> {
    let target = Launched::of_text(jdk, PROGRAM, &[], &["Main"]);
    let mut calls = calls_by_method(&profile_while_told(target, &["--root", root], &["x", "x"]));
    calls.retain(|method, calls| *calls > 0 && !method.starts_with("Spelling"));
    calls
}

fn calls_are_counted_however_names_are_spelled(jdk: &Jdk) {
    let single = format!("{HIGH}{HIGH}");
    let expected = [
        ("Start.root(Ljava/util/function/IntSupplier;)I".to_owned(), 2),
        ("𝒳.getAsInt()I".to_owned(), 2),
        ("𝒳.𝒴(I)I".to_owned(), 4),
        ("𝒳.\0\0\0(I)I".to_owned(), 6),
        (format!("𝒳.{HIGH}{HIGH}(I)I"), 8),
        (format!("𝒳.{LOW}{LOW}(I)I"), 10),
        (format!("𝒳.{LOW}{HIGH}(I)I"), 12),
        (format!("𝒳.lambda${LOW}{HIGH}$0(I)I"), 12),
        (format!("{single}.<init>()V"), 2),
        (format!("{single}.𝒴(I)I"), 2),
    ];
    assert_eq!(counted(jdk, "Start::root"), expected.into(), "JDK {}", jdk.version);
}

fn a_root_may_be_named_in_any_script(jdk: &Jdk) {
    assert_eq!(counted(jdk, "𝒳::𝒴"), [("𝒳.𝒴(I)I".to_owned(), 4)].into(), "JDK {}", jdk.version);
}
