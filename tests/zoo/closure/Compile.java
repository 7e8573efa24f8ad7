package closure;

import com.google.javascript.jscomp.CompilationLevel;
import com.google.javascript.jscomp.Compiler;
import com.google.javascript.jscomp.CompilerOptions;
import com.google.javascript.jscomp.Result;
import com.google.javascript.jscomp.SourceFile;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.List;
import zoo.Meter;
import zoo.Zoo;

/** The Closure compiler, which compiles a generated script again and again. */
public class Compile {
    private static final int FUNCTIONS = 120;

    private final String script = script();

    public static void main(String[] args) throws Exception {
        Compile compile = new Compile();
        Meter meter = new Meter("step");
        String expected = compile.step();
        Zoo.check(expected.contains("f119"), "the script's last function is gone");
        Zoo.ready();
        while (true) {
            Zoo.check(meter.time(compile::step).equals(expected), "another script came out");
        }
    }

    String step() {
        Compiler compiler = new Compiler(new PrintStream(OutputStream.nullOutputStream()));
        compiler.disableThreads();
        CompilerOptions options = new CompilerOptions();
        CompilationLevel.SIMPLE_OPTIMIZATIONS.setOptionsForCompilationLevel(options);
        Result result = compiler.compile(List.of(), List.of(SourceFile.fromCode("script.js", script)), options);
        Zoo.check(result.success, "the compiler failed: " + result.errors);
        return compiler.toSource();
    }

    private static String script() {
        StringBuilder script = new StringBuilder();
        for (int i = 0; i < FUNCTIONS; i++) {
            script.append("""
                    function f%1$d(list, limit) {
                      var sum = 0, count = list.length, unused = limit * 2;
                      for (var i = 0; i < count; i++) {
                        var item = list[i];
                        if (item > limit) { sum += item * %1$d; } else { sum -= item; }
                      }
                      var inner = function(a, b) { var c = a + b; return c * c; };
                      return inner(sum, count) > 0 ? sum : f%2$d(list, limit - 1);
                    }
                    window['f%1$d'] = f%1$d;
                    """.formatted(i, (i + 1) % FUNCTIONS));
        }
        return script.toString();
    }
}
