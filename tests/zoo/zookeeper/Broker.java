package zookeeperprogram;

import java.net.InetSocketAddress;
import java.nio.file.Files;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;
import zoo.Zoo;

/** A ZooKeeper server in one process. */
public class Broker {
    public static void main(String[] args) throws Exception {
        // Its transaction log goes to the disk with every write otherwise, which is then all that is measured.
        System.setProperty("zookeeper.forceSync", "no");
        ZooKeeperServer server = new ZooKeeperServer(
                Files.createTempDirectory("zookeeper").toFile(), Files.createTempDirectory("zookeeper").toFile(), 2000);
        ServerCnxnFactory connections = new NIOServerCnxnFactory();
        connections.configure(new InetSocketAddress("localhost", 0), 20);
        connections.startup(server);
        Zoo.ready(connections.getLocalPort());
    }
}
