//! Where threads wait, and for what: native methods that wait for something outside the JVM, or may, and methods of the JDK's and of libraries that say
//! why those above them wait.

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Something to do: who waits for it has no work.
    Work,
    /// The next element of a queue: work, or the answer to it.
    Next,
    /// Something that is part of the work.
    Other,
}

/// Where a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitSite {
    method: &'static str,
    /// What a thread does there, in a few words.
    pub said: &'static str,
    /// What for.
    pub what: What,
}

use What::{Next, Other, Work};

/// Native methods of the JDK, 11 to 25, and Netty's.
const NATIVE: &[WaitSite] = &[
    WaitSite { method: "java.net.SocketInputStream.socketRead0", said: "waits for a socket", what: Other },
    WaitSite { method: "sun.nio.ch.SocketDispatcher.read0", said: "waits for a socket", what: Other },
    WaitSite { method: "sun.nio.ch.SocketDispatcher.readv0", said: "waits for a socket", what: Other },
    WaitSite { method: "sun.nio.ch.SocketDispatcher.write0", said: "writes to a socket", what: Other },
    WaitSite { method: "sun.nio.ch.SocketDispatcher.writev0", said: "writes to a socket", what: Other },
    WaitSite { method: "java.net.SocketOutputStream.socketWrite0", said: "writes to a socket", what: Other },
    WaitSite { method: "sun.nio.ch.Net.poll", said: "waits for a socket", what: Other },
    WaitSite { method: "sun.nio.ch.Net.accept", said: "waits for a connection", what: Work },
    WaitSite { method: "sun.nio.ch.ServerSocketChannelImpl.accept0", said: "waits for a connection", what: Work },
    WaitSite { method: "java.net.PlainSocketImpl.socketAccept", said: "waits for a connection", what: Work },
    WaitSite { method: "sun.nio.ch.UnixDomainSockets.accept0", said: "waits for a connection", what: Work },
    WaitSite { method: "java.net.PlainSocketImpl.socketConnect", said: "waits to be connected", what: Other },
    WaitSite { method: "sun.nio.ch.Net.connect0", said: "waits to be connected", what: Other },
    WaitSite { method: "sun.nio.ch.UnixDomainSockets.connect0", said: "waits to be connected", what: Other },
    WaitSite { method: "sun.nio.ch.Net.pollConnect", said: "waits to be connected", what: Other },
    WaitSite { method: "sun.nio.ch.DatagramChannelImpl.receive0", said: "waits for a datagram", what: Other },
    WaitSite { method: "java.net.PlainDatagramSocketImpl.receive0", said: "waits for a datagram", what: Other },
    WaitSite { method: "java.net.PlainDatagramSocketImpl.peekData", said: "waits for a datagram", what: Other },
    WaitSite { method: "sun.nio.ch.EPoll.wait", said: "waits for sockets to be ready", what: Work },
    WaitSite { method: "io.netty.channel.epoll.Native.epollWait", said: "waits for sockets to be ready", what: Work },
    WaitSite { method: "io.netty.channel.epoll.Native.epollWait0", said: "waits for sockets to be ready", what: Work },
    WaitSite { method: "java.io.FileInputStream.readBytes", said: "reads a file or pipe", what: Other },
    WaitSite { method: "java.io.FileInputStream.read0", said: "reads a file or pipe", what: Other },
    WaitSite { method: "sun.nio.ch.FileDispatcherImpl.read0", said: "reads a file or pipe", what: Other },
    WaitSite { method: "sun.nio.ch.UnixFileDispatcherImpl.read0", said: "reads a file or pipe", what: Other },
    WaitSite { method: "java.io.FileOutputStream.writeBytes", said: "writes to a file or pipe", what: Other },
    WaitSite { method: "sun.nio.ch.FileDispatcherImpl.write0", said: "writes to a file or pipe", what: Other },
    WaitSite { method: "sun.nio.ch.UnixFileDispatcherImpl.write0", said: "writes to a file or pipe", what: Other },
    WaitSite {
        method: "java.lang.ProcessHandleImpl.waitForProcessExit0",
        said: "waits for a process to end",
        what: Other,
    },
    WaitSite { method: "java.net.Inet6AddressImpl.lookupAllHostAddr", said: "looks up a host's address", what: Other },
    WaitSite { method: "java.net.Inet4AddressImpl.lookupAllHostAddr", said: "looks up a host's address", what: Other },
    WaitSite { method: "sun.nio.fs.LinuxWatchService.poll", said: "waits for files to change", what: Work },
    WaitSite {
        method: "java.lang.ref.Reference.waitForReferencePendingList",
        said: "waits for references",
        what: Work,
    },
    WaitSite {
        method: "java.lang.VirtualThread.takeVirtualThreadListToUnblock",
        said: "waits for virtual threads to go on",
        what: Work,
    },
];

const fn queue(method: &'static str) -> WaitSite {
    WaitSite { method, said: "waits for an element of a queue", what: Next }
}

/// Methods near the top of a stack.
const NEAR: &[WaitSite] = &[
    WaitSite { method: "java.util.concurrent.ThreadPoolExecutor.getTask", said: "waits for work", what: Work },
    WaitSite { method: "java.util.concurrent.ForkJoinPool.awaitWork", said: "waits for work", what: Work },
    WaitSite {
        method: "org.apache.tomcat.util.threads.ThreadPoolExecutor.getTask",
        said: "waits for work",
        what: Work,
    },
    WaitSite {
        method: "org.eclipse.jetty.util.thread.QueuedThreadPool.idleJobPoll",
        said: "waits for work",
        what: Work,
    },
    WaitSite {
        method: "org.eclipse.jetty.util.thread.ReservedThreadExecutor$ReservedThread.reservedWait",
        said: "waits for work",
        what: Work,
    },
    WaitSite { method: "java.util.concurrent.FutureTask.awaitDone", said: "waits for a result", what: Other },
    WaitSite { method: "java.util.concurrent.CompletableFuture.waitingGet", said: "waits for a result", what: Other },
    WaitSite { method: "java.util.concurrent.CompletableFuture.timedGet", said: "waits for a result", what: Other },
    WaitSite { method: "java.util.concurrent.CountDownLatch.await", said: "waits for a latch", what: Other },
    WaitSite { method: "java.util.concurrent.Semaphore.acquire", said: "waits for a semaphore", what: Other },
    WaitSite { method: "java.util.concurrent.CyclicBarrier.dowait", said: "waits for a barrier", what: Other },
    WaitSite { method: "java.util.concurrent.Phaser.awaitAdvance", said: "waits for a phaser", what: Other },
    WaitSite { method: "java.lang.Thread.join", said: "waits for a thread to end", what: Other },
    WaitSite { method: "java.lang.VirtualThread.joinNanos", said: "waits for a thread to end", what: Other },
    WaitSite { method: "java.lang.ref.ReferenceQueue.remove", said: "waits for references", what: Work },
    WaitSite { method: "sun.nio.fs.AbstractWatchService.take", said: "waits for files to change", what: Work },
    WaitSite { method: "sun.nio.fs.AbstractWatchService.poll", said: "waits for files to change", what: Work },
    WaitSite { method: "java.util.concurrent.ExecutorCompletionService.take", said: "waits for a result", what: Other },
    WaitSite { method: "java.util.concurrent.ExecutorCompletionService.poll", said: "waits for a result", what: Other },
    queue("java.util.concurrent.ArrayBlockingQueue.take"),
    queue("java.util.concurrent.ArrayBlockingQueue.poll"),
    queue("java.util.concurrent.DelayQueue.take"),
    queue("java.util.concurrent.DelayQueue.poll"),
    queue("java.util.concurrent.LinkedBlockingQueue.take"),
    queue("java.util.concurrent.LinkedBlockingQueue.poll"),
    queue("java.util.concurrent.LinkedTransferQueue.take"),
    queue("java.util.concurrent.LinkedTransferQueue.poll"),
    queue("java.util.concurrent.PriorityBlockingQueue.take"),
    queue("java.util.concurrent.PriorityBlockingQueue.poll"),
    queue("java.util.concurrent.SynchronousQueue.take"),
    queue("java.util.concurrent.SynchronousQueue.poll"),
    queue("java.util.concurrent.LinkedBlockingDeque.takeFirst"),
    queue("java.util.concurrent.LinkedBlockingDeque.takeLast"),
    queue("java.util.concurrent.LinkedBlockingDeque.pollFirst"),
    queue("java.util.concurrent.LinkedBlockingDeque.pollLast"),
];

/// Methods that wait for something to do, and do it: they wait only where nothing is above them but the waiting itself.
const LOOPS: &[&str] = &[
    "java.util.TimerThread.mainLoop",
    "java.util.concurrent.DelayScheduler.loop",
    // Up to JDK 11 it parks by itself.
    "java.util.concurrent.ForkJoinPool.runWorker",
];
const LOOP: WaitSite = WaitSite { method: "", said: "waits for work", what: Work };

/// What the methods that wait begin with.
const WAITING: &[&str] =
    &["java.lang.Object.wait", "jdk.internal.misc.Unsafe.park", "java.util.concurrent.locks.LockSupport.park"];

/// How far below the top of a stack the reason of a wait is looked for; and how far below a queue who takes of it.
const DEPTH: usize = 12;
const TAKER: usize = 3;

/// What a thread does in a native method, `a.b.C.m`; of others nothing is known.
pub fn native(method: &str) -> Option<WaitSite> {
    NATIVE.iter().find(|place| place.method == method).copied()
}

/// Why a thread waits that has these methods on its stack, the innermost first.
pub fn near<'a>(stack: impl Iterator<Item = &'a str>) -> Option<WaitSite> {
    let stack: Vec<&str> = stack.take(DEPTH).collect();
    let begun = stack.iter().find(|method| !WAITING.iter().any(|waiting| method.starts_with(waiting)));
    if begun.is_some_and(|method| LOOPS.contains(method)) {
        return Some(LOOP);
    }
    let place = |method: &&str| NEAR.iter().find(|place| place.method == *method).copied();
    let (at, first) = stack.iter().enumerate().find_map(|(at, method)| Some((at, place(method)?)))?;
    let below = stack.iter().skip(at + 1).take(TAKER).filter_map(place);
    // A pool takes its work from a queue, too.
    let taker = below.into_iter().find(|place| first.what == Next && place.what != Next);
    Some(taker.unwrap_or(first))
}

/// Whether a thread in this native method waits, rather than reads or writes a file, or does something that nothing is known of.
pub fn waits(method: &str) -> bool {
    native(method).is_some_and(|place| place.said.starts_with("waits") || place.said.starts_with("looks up"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_told_from_work() {
        let methods = [
            "sun.nio.ch.EPoll.wait",
            "java.lang.VirtualThread.takeVirtualThreadListToUnblock",
            "sun.nio.ch.SocketDispatcher.write0",
            "java.io.UnixFileSystem.delete0",
        ];
        assert_eq!(methods.map(waits), [true, true, false, false]);
        assert_eq!(native("java.io.FileInputStream.read0").map(|place| place.said), Some("reads a file or pipe"));
    }

    #[test]
    fn who_takes_of_a_queue_says_what_for() {
        let park = "java.util.concurrent.locks.LockSupport.park";
        let of = |stack: &[&'static str]| near(stack.iter().copied()).map(|place| (place.said, place.what));
        let take = "java.util.concurrent.LinkedBlockingQueue.take";
        assert_eq!(of(&[park, take, "a.B.next", "a.B.run"]), Some(("waits for an element of a queue", Next)));
        let get_task = "java.util.concurrent.ThreadPoolExecutor.getTask";
        assert_eq!(of(&[park, take, get_task]), Some(("waits for work", Work)));
        let complete = "java.util.concurrent.ExecutorCompletionService.take";
        assert_eq!(of(&[park, take, complete, "a.B.next"]), Some(("waits for a result", Other)));
        let deque = "java.util.concurrent.LinkedBlockingDeque.takeFirst";
        let watch =
            [park, deque, "java.util.concurrent.LinkedBlockingDeque.take", "sun.nio.fs.AbstractWatchService.take"];
        assert_eq!(of(&watch), Some(("waits for files to change", Work)));
    }

    #[test]
    fn a_loop_waits_for_work_unless_its_work_waits() {
        let [wait, timer] = ["java.lang.Object.wait0", "java.util.TimerThread.mainLoop"];
        assert_eq!(near([wait, "java.lang.Object.wait", timer].into_iter()), Some(LOOP));
        assert_eq!(near([wait, "java.lang.Object.wait", "a.B.run", timer].into_iter()), None);
    }
}
