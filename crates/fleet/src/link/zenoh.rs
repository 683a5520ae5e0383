//! Links over a network, by Zenoh.
//!
//! The controller is a router that listens on one TCP port; the hosts are clients, which dial out and listen
//! nowhere. Discovery is off: no multicast, no gossip. TLS is around Zenoh ([`tunnel`]) and requires the
//! certificates of this controller and its agents. A session requires the host's password, which is derived
//! from its token; messages are authenticated in addition ([`super::seal`]).
//!
//! Keys: `keepup/HOST/heartbeat`, `keepup/HOST/order`; liveliness tokens `keepup/HOST/alive/INCARNATION` of
//! the hosts and `keepup/alive` of the controller.
mod certificates;
mod closing;
mod config;
mod memory_file;
mod refusal;
mod tunnel;

use std::fs::{File, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use ::zenoh::key_expr::KeyExpr;
use ::zenoh::qos::{CongestionControl, Priority};
use ::zenoh::sample::{Sample, SampleKind};
use ::zenoh::{Session, Wait as _};
use keepup_error::Cause;
use keepup_peer::Token;
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

pub use self::certificates::ControllerTls;
use self::closing::ClosedOnDrop;
use self::memory_file::MemoryFile;
use self::tunnel::Tunnel;
use super::ends::{AgentEnd, ControllerEnd};
use super::{AgentLink, ControllerLink, FromController, FromHost, Secret, Traffic, Waker, seal};
use crate::error::FleetError;
use crate::message::{Heartbeat, HostId, Order};
use crate::tls::AgentTls;

/// Key of the controller's liveliness token.
const ALIVE: &str = "keepup/alive";
/// Timeout for discovering the controller's liveliness token.
const ALIVE_TIME: Duration = Duration::from_secs(5);
/// Attempts to open a session, and the time between them.
const ATTEMPTS: u32 = 4;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(500);
/// Hint of an agent that has no session.
const JOIN_HINT: &str = "a token is valid until its controller ends; `keepup fleet up FILE` starts both";

/// End of the controller.
pub struct ZenohController {
    end: Arc<ControllerEnd>,
    session: ClosedOnDrop<TlsListener>,
}

impl ZenohController {
    /// Listens on `address` for hosts 0 to `hosts` - 1, with TLS if there are certificates.
    ///
    /// # Errors
    /// An address on which it cannot listen.
    pub fn listen(
        address: SocketAddr,
        secret: &Secret,
        hosts: HostId,
        tls: Option<&ControllerTls>,
    ) -> Result<Self, FleetError> {
        let refused = |why: Cause| FleetError::Listen { address: address.to_string(), why };
        let failed = |why: String| refused(why.into());
        let end = Arc::new(ControllerEnd::new(secret, hosts).map_err(|error| failed(error.to_string()))?);
        let (endpoint, tls) = match tls {
            Some(tls) => {
                let (endpoint, listener) = with_tls(address, hosts, tls).map_err(refused)?;
                (endpoint, Some(listener))
            }
            None => {
                // Zenoh's text for an address in use has source lines.
                drop(TcpListener::bind(address).map_err(|error| refused(cannot_bind(&error)))?);
                (format!("tcp/{address}"), None)
            }
        };
        let session = open_router(&endpoint, secret, hosts).map_err(failed)?;
        subscribe(&session, "keepup/*/heartbeat", {
            let end = Arc::clone(&end);
            move |sample| end.accept(host_of(sample.key_expr()), &sample.payload().to_bytes())
        })
        .map_err(failed)?;
        watch(&session, "keepup/*/alive/*", {
            let end = Arc::clone(&end);
            move |sample| {
                if let Some((host, incarnation)) = incarnation_of(sample.key_expr())
                    && sample.kind() == SampleKind::Delete
                {
                    end.close(host, incarnation);
                }
            }
        })
        .map_err(failed)?;
        let alive = session.liveliness().declare_token(ALIVE).wait().map_err(|e| failed(e.to_string()))?;
        Ok(Self { end, session: ClosedOnDrop::new(session, alive, tls) })
    }
}

/// Why the controller cannot listen.
fn cannot_bind(error: &io::Error) -> Cause {
    Cause::new(error.to_string()).with_hint(match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there (ss -ltnp); set another `listen` in the fleet file"
        }
        io::ErrorKind::AddrNotAvailable => {
            "set `listen` in the fleet file to an address of this machine: ip address"
        }
        _ => "set another `listen` in the fleet file",
    })
}

/// TLS listener of the controller, with the directory of Zenoh's socket.
struct TlsListener {
    _tunnel: Tunnel,
    /// Keeps `/proc/self/fd/N` valid.
    _open: File,
    _directory: TempDir,
}

/// Accepts TLS connections at `address`. Returns Zenoh's endpoint for them, in a directory that only this
/// user can enter. The path goes through a descriptor of the directory: Zenoh ends a path at `#` or `?`, and
/// the kernel limits it to 107 bytes.
fn with_tls(address: SocketAddr, hosts: HostId, tls: &ControllerTls) -> Result<(String, TlsListener), Cause> {
    let config = certificates::server(tls);
    let config = config.map_err(|error| Cause::new(format!("cannot use its certificates: {error}")))?;
    let listener = tunnel::listen(address).map_err(|error| cannot_bind(&error))?;
    let cannot = |error: io::Error| {
        let why = Cause::new(format!("cannot create a socket for Zenoh: {error}"));
        why.with_hint("TMPDIR must be a directory that this user can write to")
    };
    let private = Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().prefix("keepup-fleet-").permissions(private).tempdir();
    let directory = directory.map_err(cannot)?;
    let open = File::open(directory.path()).map_err(cannot)?;
    // Programs that remove old temporary files leave a locked directory alone (tmpfiles.d(5)).
    flock(&open, FlockOperation::NonBlockingLockExclusive).map_err(|error| cannot(error.into()))?;
    let socket = PathBuf::from(format!("/proc/self/fd/{}/zenoh", open.as_raw_fd()));
    let endpoint = format!("unixsock-stream/{}", socket.display());
    let limit = usize::try_from(config::sessions_max(hosts)).unwrap_or(usize::MAX);
    let tunnel = tunnel::accept(listener, config, socket, limit).map_err(cannot)?;
    Ok((endpoint, TlsListener { _tunnel: tunnel, _open: open, _directory: directory }))
}

/// Opens the session of the controller.
fn open_router(endpoint: &str, secret: &Secret, hosts: HostId) -> Result<Session, String> {
    let mut users = String::new();
    for host in 0..hosts {
        let token = secret.token(host).map_err(|error| error.to_string())?;
        users.push_str(&format!("{}:{}\n", user(host), seal::password(&token)));
    }
    // Zenoh reads the file now.
    let dictionary = MemoryFile::create(&users).map_err(|e| format!("cannot store passwords: {e}"))?;
    let config = config::router(endpoint, &dictionary.path(), hosts).map_err(|error| error.to_string())?;
    ::zenoh::open(config).wait().map_err(|error| error.to_string())
}

impl ControllerLink for ZenohController {
    fn send(&mut self, order: &Order) {
        if let Some(bytes) = self.end.seal(order) {
            put(self.session.get(), format!("keepup/{}/order", order.host), bytes);
        }
    }

    fn receive(&mut self, timeout: Duration) -> Option<FromHost> {
        self.end.receive(timeout)
    }

    fn traffic(&self) -> Traffic {
        self.end.traffic()
    }

    fn waker(&self) -> Waker {
        let end = Arc::clone(&self.end);
        Waker::new(move || end.wake())
    }
}

/// End of a host.
pub struct ZenohAgent {
    end: Arc<AgentEnd>,
    session: ClosedOnDrop<Tunnel>,
    key: String,
}

impl ZenohAgent {
    /// Connects to the controller at `address`, with TLS if there are certificates. Reconnects when the
    /// connection is lost.
    ///
    /// # Errors
    /// No controller there, another one, or one that does not know this token.
    pub fn connect(
        address: SocketAddr,
        host: HostId,
        incarnation: u64,
        token: &Token,
        tls: Option<&AgentTls>,
    ) -> Result<Self, FleetError> {
        let failed = |why: Cause| FleetError::Join { address: address.to_string(), why };
        let text = |why: String| failed(why.into());
        let end = Arc::new(AgentEnd::new(host, token));
        let (endpoint, tunnel) = match tls {
            Some(tls) => {
                let config = certificates::client(Some(tls));
                let config = config.map_err(|error| {
                    failed(Cause::new(format!("cannot use its certificates: {error}")).with_hint(JOIN_HINT))
                })?;
                let tunnel = tunnel::dial(address, config);
                let (tunnel, path) =
                    tunnel.map_err(|error| text(format!("cannot create a socket: {error}")))?;
                (format!("unixsock-stream/{path}"), Some(tunnel))
            }
            None => (format!("tcp/{address}"), None),
        };
        let session = open_client(&endpoint, host, token);
        let session = session
            .map_err(|error| text(error.to_string()))?
            .ok_or_else(|| failed(Cause::new(refusal::cause(address, tls)).with_hint(JOIN_HINT)))?;
        subscribe(&session, &format!("keepup/{host}/order"), {
            let end = Arc::clone(&end);
            move |sample| end.accept(&sample.payload().to_bytes())
        })
        .map_err(text)?;
        let (found, is_found) = mpsc::channel();
        watch(&session, ALIVE, {
            let end = Arc::clone(&end);
            move |sample| match sample.kind() {
                // Only the first one has a receiver.
                SampleKind::Put => drop(found.send(())),
                SampleKind::Delete => end.close(),
            }
        })
        .map_err(text)?;
        // Its loss is reported only if the token was seen before.
        is_found.recv_timeout(ALIVE_TIME).map_err(|_| text("no controller there".to_owned()))?;
        let alive = session.liveliness().declare_token(format!("keepup/{host}/alive/{incarnation}"));
        let alive = alive.wait().map_err(|error| text(error.to_string()))?;
        let session = ClosedOnDrop::new(session, alive, tunnel);
        Ok(Self { end, session, key: format!("keepup/{host}/heartbeat") })
    }
}

/// Opens the session of a host. Retries, because the controller may be busy and the network just coming up.
/// Zenoh does not report why it fails.
fn open_client(endpoint: &str, host: HostId, token: &Token) -> Result<Option<Session>, ::zenoh::Error> {
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(ATTEMPT_PAUSE);
        }
        let config = config::client(endpoint, &user(host), &seal::password(token))?;
        if let Ok(session) = ::zenoh::open(config).wait() {
            return Ok(Some(session));
        }
    }
    Ok(None)
}

impl AgentLink for ZenohAgent {
    fn send(&mut self, heartbeat: &Heartbeat) {
        if let Some(bytes) = self.end.seal(heartbeat) {
            put(self.session.get(), self.key.clone(), bytes);
        }
    }

    fn receive(&mut self, timeout: Duration) -> Option<FromController> {
        self.end.receive(timeout)
    }

    fn traffic(&self) -> Traffic {
        self.end.traffic()
    }

    fn waker(&self) -> Waker {
        let end = Arc::clone(&self.end);
        Waker::new(move || end.wake())
    }
}

/// User name of a host for its session.
fn user(host: HostId) -> String {
    format!("host-{host}")
}

/// Sends without waiting for an acknowledgement. A message that does not fit the queue of its peer is
/// dropped; the next heartbeat or order replaces it.
fn put(session: Option<&Session>, key: String, bytes: Vec<u8>) {
    let Some(session) = session else { return };
    let put = session.put(key, bytes).congestion_control(CongestionControl::Drop);
    drop(put.priority(Priority::InteractiveHigh).express(true).wait());
}

fn subscribe(
    session: &Session,
    key: &str,
    take: impl Fn(Sample) + Send + Sync + 'static,
) -> Result<(), String> {
    let subscriber = session.declare_subscriber(key.to_owned()).callback(take).background();
    subscriber.wait().map_err(|error| error.to_string())
}

/// Subscribes to liveliness tokens, also to those that are there already.
fn watch(session: &Session, key: &str, take: impl Fn(Sample) + Send + Sync + 'static) -> Result<(), String> {
    let subscriber = session.liveliness().declare_subscriber(key.to_owned()).history(true);
    subscriber.callback(take).background().wait().map_err(|error| error.to_string())
}

/// Host of `keepup/HOST/…`.
fn host_of(key: &KeyExpr) -> Option<HostId> {
    key.as_str().split('/').nth(1)?.parse().ok()
}

/// Host and incarnation of `keepup/HOST/alive/INCARNATION`.
fn incarnation_of(key: &KeyExpr) -> Option<(HostId, u64)> {
    Some((host_of(key)?, key.as_str().split('/').nth(3)?.parse().ok()?))
}

#[cfg(test)]
#[path = "zenoh_tests.rs"]
mod tests;
