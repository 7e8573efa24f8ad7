package fixed;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.StringWriter;
import java.net.URI;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.List;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import zoo.Meter;
import zoo.Zoo;

/** Jobs that do the same each time. With arguments: so many rounds, and so many rounds of a loop in each job; then it ends. */
public class Fixed {
    private static final int METHODS = 20;
    private static final int ROWS = 200;
    private static final int ORDERS = 100;
    private static final int LINES = 5;

    private final JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    private final ObjectMapper mapper = new ObjectMapper();
    private final String document = document();
    private final String source = source();
    private final int mixed;

    Fixed(int mixed) {
        this.mixed = mixed;
    }

    public static void main(String[] args) throws Exception {
        Fixed fixed = new Fixed(args.length > 0 ? Integer.parseInt(args[1]) : 100);
        int rounds = args.length > 0 ? Integer.parseInt(args[0]) : Integer.MAX_VALUE;
        Meter compile = new Meter("compile");
        Meter query = new Meter("query");
        Meter parse = new Meter("parse");
        long compiled = compile.time(fixed::compile);
        long queried = query.time(fixed::query);
        long parsed = parse.time(fixed::parse);
        if (args.length == 0) {
            Zoo.ready();
        }
        for (int i = 1; i < rounds; i++) {
            Zoo.check(compile.time(fixed::compile) == compiled, "another class file");
            Zoo.check(query.time(fixed::query) == queried, "another answer");
            Zoo.check(parse.time(fixed::parse) == parsed, "another document");
        }
    }

    /** How long the class file is. */
    long compile() throws Exception {
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        JavaFileObject text = new SimpleJavaFileObject(URI.create("string:///generated/Same.java"), JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean ignoreEncodingErrors) {
                return source;
            }
        };
        try (JavaFileManager files = new ForwardingJavaFileManager<>(compiler.getStandardFileManager(null, null, null)) {
            @Override
            public JavaFileObject getJavaFileForOutput(Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
                return new SimpleJavaFileObject(URI.create("memory:///" + name.replace('.', '/') + ".class"), kind) {
                    @Override
                    public OutputStream openOutputStream() {
                        return file;
                    }
                };
            }
        }) {
            StringWriter messages = new StringWriter();
            boolean success = compiler.getTask(messages, files, null, List.of("-proc:none"), null, List.of(text)).call();
            Zoo.check(success, "javac failed: " + messages);
        }
        return file.size() + mix(mixed);
    }

    /** A number that all answers go into. */
    long query() throws Exception {
        long sum = 0;
        try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:"); Statement statement = connection.createStatement()) {
            statement.execute("create table sale(id int primary key, name varchar(40), amount int)");
            statement.execute("create index by_amount on sale(amount)");
            try (PreparedStatement insert = connection.prepareStatement("insert into sale values(?, ?, ?)")) {
                for (int i = 0; i < ROWS; i++) {
                    insert.setInt(1, i);
                    insert.setString(2, "name" + i % 17);
                    insert.setInt(3, i * 7 % 101);
                    insert.executeUpdate();
                }
            }
            String groups = "select name, sum(amount), count(*) from sale where amount > 10 group by name order by 2 desc, 1";
            try (ResultSet rows = statement.executeQuery(groups)) {
                while (rows.next()) {
                    sum += rows.getLong(2) * rows.getLong(3);
                }
            }
            statement.executeUpdate("update sale set amount = amount + 1 where id between 50 and 150");
            String pairs = "select a.id, b.id from sale a join sale b on a.amount = b.amount where a.id < b.id order by 1, 2";
            try (ResultSet rows = statement.executeQuery(pairs)) {
                while (rows.next()) {
                    sum += rows.getInt(1) + rows.getInt(2);
                }
            }
            sum += statement.executeUpdate("delete from sale where name like 'name1%'");
        }
        return sum + mix(mixed);
    }

    /** A number that the whole document goes into. */
    long parse() throws Exception {
        long sum = 0;
        for (JsonNode order : mapper.readTree(document).get("orders")) {
            sum += order.get("amount").asLong();
            for (JsonNode line : order.get("lines")) {
                sum += line.get("name").asText().length();
            }
        }
        return sum + mix(mixed);
    }

    private static int mix(int rounds) {
        int mixed = 0;
        for (int i = 0; i < rounds; i++) {
            mixed = 31 * mixed + i;
        }
        return mixed;
    }

    private static String source() {
        StringBuilder text = new StringBuilder("package generated; import java.util.*; public class Same {\n");
        for (int i = 0; i < METHODS; i++) {
            text.append("int m%1$d(int n) { int sum = 0; for (int i = 0; i < n; i++) { sum += i * %1$d; } return sum; }\n".formatted(i));
        }
        return text.append("List<String> long_ones(Collection<String> all) { return all.stream().filter(one -> one.length() > 3).toList(); } }").toString();
    }

    private static String document() {
        StringBuilder text = new StringBuilder("{\"orders\": [");
        for (int i = 0; i < ORDERS; i++) {
            text.append(i > 0 ? "," : "").append("{\"id\": %d, \"amount\": %d, \"price\": %d.25, \"lines\": [".formatted(i, i * 13, i));
            for (int j = 0; j < LINES; j++) {
                text.append(j > 0 ? "," : "").append("{\"name\": \"n\\u00e4me %d\", \"ok\": true}".formatted(i * j));
            }
            text.append("]}");
        }
        return text.append("]}").toString();
    }
}
