package h2server;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.Statement;
import zoo.Zoo;

/** H2 as a server, with a database in its memory. */
public class Server {
    static final int ACCOUNTS = 1000;
    static final int BRANCHES = 10;
    static final int BALANCE = 100;

    public static void main(String[] args) throws Exception {
        org.h2.tools.Server server = org.h2.tools.Server.createTcpServer("-tcpPort", "0").start();
        Connection keepsItOpen = DriverManager.getConnection("jdbc:h2:mem:bank;DB_CLOSE_DELAY=-1", "sa", "");
        try (Statement schema = keepsItOpen.createStatement()) {
            schema.execute("create table account (id int primary key, branch int, owner varchar(40), balance bigint)");
            schema.execute("create index by_branch on account (branch)");
        }
        try (PreparedStatement insert = keepsItOpen.prepareStatement("insert into account values (?, ?, ?, ?)")) {
            for (int i = 0; i < ACCOUNTS; i++) {
                insert.setInt(1, i);
                insert.setInt(2, i % BRANCHES);
                insert.setString(3, "owner " + i);
                insert.setInt(4, BALANCE);
                insert.executeUpdate();
            }
        }
        Zoo.ready(server.getPort());
    }
}
