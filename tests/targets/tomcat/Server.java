import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/** A real Tomcat with one servlet behind one filter. Says its port; commands: served, quit. */
public class Server {
    static final AtomicLong SERVED = new AtomicLong();

    public static void main(String[] args) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(args[0]);
        tomcat.setHostname("127.0.0.1");
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        Context context = tomcat.addContext("", new File(args[0]).getAbsolutePath());
        Tomcat.addServlet(context, "words", new Words());
        context.addServletMappingDecoded("/", "words");
        FilterDef filter = new FilterDef();
        filter.setFilterName("timing");
        filter.setFilter(new Timing());
        context.addFilterDef(filter);
        FilterMap map = new FilterMap();
        map.setFilterName("timing");
        map.addURLPattern("/*");
        context.addFilterMap(map);
        tomcat.start();
        System.out.println("PORT " + tomcat.getConnector().getLocalPort());
        for (int c; (c = System.in.read()) >= 0;) {
            if (c == '\n') {
                System.out.println("SERVED " + SERVED.get());
            }
        }
        tomcat.stop();
        System.out.println("BYE");
        System.exit(0);
    }

    public static class Timing implements Filter {
        @Override
        public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            chain.doFilter(request, response);
        }
    }

    public static class Words extends HttpServlet {
        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            SERVED.incrementAndGet();
            response.setContentType("text/plain");
            response.getWriter().println("hello " + sentence(request.getParameter("n")));
        }

        private String sentence(String n) {
            StringBuilder words = new StringBuilder();
            for (int i = 0; i < (n == null ? 3 : Integer.parseInt(n)); i++) {
                words.append(word(i)).append(' ');
            }
            return words.toString();
        }

        private static String word(int i) {
            return Integer.toString(i * 7919, 36);
        }
    }
}
