//! What passes, what does not, and how connections end.
use std::io::{ErrorKind, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream as Socket};
use std::process::Command;

use super::super::certificates::{ControllerTls, client, server};
use super::*;

const LONG: Duration = Duration::from_secs(60);
/// Name of a socket, for the test that connects from another process.
const SOCKET: &str = "KEEPUP_TEST_SOCKET";

/// Both sides, with the ends of Zenoh.
struct Site {
    address: SocketAddr,
    tls: ControllerTls,
    accepting: Tunnel,
    /// In place of Zenoh at the controller.
    inside: UnixListener,
    _directory: tempfile::TempDir,
}

impl Site {
    fn new(connections_max: usize) -> Self {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("zenoh");
        let inside = UnixListener::bind(&socket).unwrap();
        let tls = ControllerTls::new(address).unwrap();
        let accepting = accept(listener, server(&tls).unwrap(), socket, connections_max).unwrap();
        Self { address, tls, accepting, inside, _directory: directory }
    }

    fn dial(&self) -> (Tunnel, String) {
        dial(self.address, client(Some(&self.tls.agent())).unwrap()).unwrap()
    }

    /// A connection that has been made, from the agent's to the controller's Zenoh.
    fn connect(&self, path: &str) -> (Socket, Socket) {
        let near = connect(path);
        let far = self.inside.accept().unwrap().0;
        far.set_read_timeout(Some(LONG)).unwrap();
        (near, far)
    }

    fn has_connection(&self) -> bool {
        self.inside.set_nonblocking(true).unwrap();
        let found = self.inside.accept();
        self.inside.set_nonblocking(false).unwrap();
        found.map_err(|error| assert_eq!(error.kind(), ErrorKind::WouldBlock)).is_ok()
    }
}

fn connect(path: &str) -> Socket {
    let name = path.strip_prefix('\0').unwrap();
    let socket = Socket::connect_addr(&UnixAddr::from_abstract_name(name).unwrap()).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket
}

/// Bytes until the end.
fn rest(socket: &mut impl std::io::Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end too, a timeout is not.
    if let Err(error) = socket.read_to_end(&mut bytes) {
        assert_ne!(error.kind(), ErrorKind::WouldBlock);
    }
    bytes
}

#[test]
fn what_was_written_before_the_end_arrives_in_both_directions() {
    let site = Site::new(4);
    let (_dialing, path) = site.dial();
    let sent: Vec<u8> = (0..3_000_000u32).map(|number| (number % 251) as u8).collect();
    for agent_sends in [true, false] {
        let (near, far) = site.connect(&path);
        let (mut from, mut to) = if agent_sends { (near, far) } else { (far, near) };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                from.write_all(&sent).unwrap();
                drop(from);
            });
            assert!(rest(&mut to) == sent);
        });
    }
}

#[test]
fn an_end_of_a_tunnel_ends_its_connections_after_what_was_written() {
    for agent_ends in [true, false] {
        let site = Site::new(4);
        let (dialing, path) = site.dial();
        let (mut near, mut far) = site.connect(&path);
        near.write_all(b"from near").unwrap();
        far.write_all(b"from far").unwrap();
        let Site { accepting, .. } = site;
        if agent_ends {
            drop((near, dialing));
            assert_eq!(rest(&mut far), b"from near");
            drop(accepting);
        } else {
            drop((far, accepting));
            assert_eq!(rest(&mut near), b"from far");
            drop(dialing);
        }
    }
}

#[test]
fn strangers_reach_only_the_handshake() {
    let site = Site::new(4);
    let mut stranger = TcpStream::connect(site.address).unwrap();
    stranger.set_read_timeout(Some(LONG)).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    rest(&mut stranger);
    // With a certificate of another session.
    let other = ControllerTls::new(site.address).unwrap().agent();
    let config = client(Some(&crate::tls::AgentTls { controller: site.tls.agent().controller, ..other }));
    let (_dialing, path) = dial(site.address, config.unwrap()).unwrap();
    let mut near = connect(&path);
    // It may be closed already.
    let _ = near.write_all(b"hello");
    assert_eq!(rest(&mut near), b"");
    assert!(!site.has_connection());
}

#[test]
fn connections_beyond_the_limit_are_closed() {
    let site = Site::new(1);
    let (_dialing, path) = site.dial();
    let (mut first, mut far) = site.connect(&path);
    assert_eq!(rest(&mut connect(&path)), b"");
    assert!(!site.has_connection());
    first.write_all(b"still there").unwrap();
    drop(first);
    assert_eq!(rest(&mut far), b"still there");
    drop(far);
    // Its place is free once both sides have noticed the end.
    for _ in 0..600 {
        let _again = connect(&path);
        std::thread::sleep(Duration::from_millis(100));
        if site.has_connection() {
            return;
        }
    }
    panic!("its place is not free");
}

#[test]
fn another_process_cannot_use_the_socket() {
    let site = Site::new(4);
    let (_dialing, path) = site.dial();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "link::zenoh::tunnel::tests::connect_from_another_process", "--ignored"])
        .env(SOCKET, path.trim_start_matches('\0'))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert!(!site.has_connection());
    site.connect(&path);
}

#[test]
#[ignore = "run by another_process_cannot_use_the_socket"]
fn connect_from_another_process() {
    let mut socket = connect(&format!("\0{}", std::env::var(SOCKET).unwrap()));
    assert_eq!(rest(&mut socket), b"");
}
