//! Native methods in which a thread waits for something outside the JVM, or may.

/// Those of the JDK, 11 to 25, and Netty's, each with what a thread does in it.
const OUTSIDE: &[(&str, &str)] = &[
    ("java.net.SocketInputStream.socketRead0", "waits for a socket"),
    ("sun.nio.ch.SocketDispatcher.read0", "waits for a socket"),
    ("sun.nio.ch.SocketDispatcher.readv0", "waits for a socket"),
    ("sun.nio.ch.SocketDispatcher.write0", "writes to a socket"),
    ("sun.nio.ch.SocketDispatcher.writev0", "writes to a socket"),
    ("java.net.SocketOutputStream.socketWrite0", "writes to a socket"),
    ("sun.nio.ch.Net.poll", "waits for a socket"),
    ("sun.nio.ch.Net.accept", "waits for a connection"),
    ("sun.nio.ch.ServerSocketChannelImpl.accept0", "waits for a connection"),
    ("java.net.PlainSocketImpl.socketAccept", "waits for a connection"),
    ("java.net.PlainSocketImpl.socketConnect", "waits to be connected"),
    ("sun.nio.ch.Net.connect0", "waits to be connected"),
    ("sun.nio.ch.Net.pollConnect", "waits to be connected"),
    ("sun.nio.ch.DatagramChannelImpl.receive0", "waits for a datagram"),
    ("sun.nio.ch.EPoll.wait", "waits for sockets to be ready"),
    ("io.netty.channel.epoll.Native.epollWait", "waits for sockets to be ready"),
    ("io.netty.channel.epoll.Native.epollWait0", "waits for sockets to be ready"),
    ("java.io.FileInputStream.readBytes", "reads a file or pipe"),
    ("java.io.FileInputStream.read0", "reads a file or pipe"),
    ("sun.nio.ch.FileDispatcherImpl.read0", "reads a file or pipe"),
    ("sun.nio.ch.UnixFileDispatcherImpl.read0", "reads a file or pipe"),
    ("java.io.FileOutputStream.writeBytes", "writes to a file or pipe"),
    ("sun.nio.ch.FileDispatcherImpl.write0", "writes to a file or pipe"),
    ("sun.nio.ch.UnixFileDispatcherImpl.write0", "writes to a file or pipe"),
    ("java.lang.ProcessHandleImpl.waitForProcessExit0", "waits for a process to end"),
    ("java.net.Inet6AddressImpl.lookupAllHostAddr", "looks up a host's address"),
    ("java.net.Inet4AddressImpl.lookupAllHostAddr", "looks up a host's address"),
    ("sun.nio.fs.LinuxWatchService.poll", "waits for files to change"),
    ("java.lang.ref.Reference.waitForReferencePendingList", "waits for references"),
];

/// What a thread does in such a method, `a.b.C.m`; of others nothing is known.
pub fn doing(method: &str) -> Option<&'static str> {
    OUTSIDE.iter().find(|(one, _)| *one == method).map(|(_, said)| *said)
}

/// Whether a thread in this method waits, rather than reads or writes a file, or does something that nothing is known of.
pub fn waits(method: &str) -> bool {
    doing(method).is_some_and(|said| said.starts_with("waits") || said.starts_with("looks up"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_told_from_work() {
        let methods = ["sun.nio.ch.EPoll.wait", "sun.nio.ch.SocketDispatcher.write0", "java.io.UnixFileSystem.delete0"];
        assert_eq!(methods.map(waits), [true, false, false]);
        assert_eq!(doing("java.io.FileInputStream.read0"), Some("reads a file or pipe"));
    }
}
