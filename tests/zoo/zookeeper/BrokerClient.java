package zookeeperprogram;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;
import zoo.Clients;

/** Writes a node, reads it, and lists its siblings: each question is three requests. */
public class BrokerClient {
    private static final int NODES = 20;
    private static final AtomicInteger NEXT = new AtomicInteger();

    public static void main(String[] args) throws Exception {
        Clients.run(2, () -> {
            CountDownLatch connected = new CountDownLatch(1);
            ZooKeeper zooKeeper = new ZooKeeper("localhost:" + args[0], 60_000, event -> {
                if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                    connected.countDown();
                }
            });
            connected.await();
            String home = "/client" + NEXT.getAndIncrement();
            zooKeeper.create(home, null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            for (int i = 0; i < NODES; i++) {
                zooKeeper.create(home + "/node" + i, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            }
            return n -> {
                String node = home + "/node" + n % NODES;
                String value = "value " + n;
                Stat written = zooKeeper.setData(node, value.getBytes(StandardCharsets.UTF_8), -1);
                Stat read = new Stat();
                Clients.expect(value, new String(zooKeeper.getData(node, false, read), StandardCharsets.UTF_8));
                Clients.expect(String.valueOf(written.getMzxid()), String.valueOf(read.getMzxid()));
                Clients.expect(String.valueOf(NODES), String.valueOf(zooKeeper.getChildren(home, false).size()));
            };
        });
    }
}
