package h2server;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import zoo.Clients;

/** Moves money within a branch, and asks for what it has altogether: that stays the same. */
public class BankClient {
    public static void main(String[] args) throws Exception {
        String url = "jdbc:h2:tcp://localhost:" + args[0] + "/mem:bank";
        Clients.run(2, () -> {
            Connection connection = DriverManager.getConnection(url, "sa", "");
            PreparedStatement move = connection.prepareStatement("update account set balance = balance + casewhen(id = ?, 1, -1) where id in (?, ?)");
            PreparedStatement ask = connection.prepareStatement(
                    "select branch, sum(balance), count(distinct upper(owner)), max(balance) from account where branch <= ? "
                            + "group by branch order by branch desc");
            return n -> {
                int branch = n % Server.BRANCHES;
                int from = branch + n * 7 % 100 * Server.BRANCHES;
                int to = branch + (n * 7 + 31) % 100 * Server.BRANCHES;
                move.setInt(1, to);
                move.setInt(2, from);
                move.setInt(3, to);
                Clients.expect("2", String.valueOf(move.executeUpdate()));
                ask.setInt(1, branch);
                try (ResultSet rows = ask.executeQuery()) {
                    rows.next();
                    int perBranch = Server.ACCOUNTS / Server.BRANCHES;
                    Clients.expect(branch + " " + perBranch * Server.BALANCE + " " + perBranch,
                            rows.getInt(1) + " " + rows.getLong(2) + " " + rows.getInt(3));
                }
            };
        });
    }
}
