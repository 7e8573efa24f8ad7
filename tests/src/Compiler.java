import java.io.*;
import java.nio.charset.StandardCharsets;
import javax.tools.*;

/** The compiler in a process that is kept: each line of its input is a command line, with zeros between the arguments. */
class Compiler {
    public static void main(String[] args) throws IOException {
        JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null;) {
            int status = javac.run(null, System.out, System.out, line.split("\0"));
            System.out.println("STATUS " + status);
        }
    }
}
