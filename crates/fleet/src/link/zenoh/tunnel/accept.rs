//! The controller's side: TLS connections of agents, each passed on to the Unix socket of Zenoh.
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::{FAILURE_PAUSE, HANDSHAKE_TIME, Tunnel, relay};

/// Handshakes at the same time. One of an agent takes milliseconds, so the oldest one gives way.
const HANDSHAKES_MAX: usize = 256;
/// Connections that wait until they are accepted.
const BACKLOG: i32 = 1024;

/// Listens on `address`.
///
/// # Errors
/// An address on which it cannot listen.
pub(in super::super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Accepts connections of `listener`, of which `connections_max` may be past their handshake, and connects
/// each of them to the Unix socket `local`.
///
/// # Errors
/// No thread.
pub(in super::super) fn accept(
    listener: TcpListener,
    config: ServerConfig,
    local: PathBuf,
    connections_max: usize,
) -> io::Result<Tunnel> {
    listener.set_nonblocking(true)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Tunnel::start(|| {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        Ok(serve(listener, acceptor, local.into(), connections_max))
    })
}

async fn serve(
    listener: tokio::net::TcpListener,
    acceptor: TlsAcceptor,
    local: Arc<Path>,
    connections_max: usize,
) -> Infallible {
    let places = Arc::new(Semaphore::new(connections_max));
    let mut handshakes: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(FAILURE_PAUSE).await;
            continue;
        };
        handshakes.retain(|handshake| !handshake.is_finished());
        if handshakes.len() == HANDSHAKES_MAX
            && let Some(oldest) = handshakes.pop_front()
        {
            oldest.abort();
        }
        let (acceptor, local, places) = (acceptor.clone(), Arc::clone(&local), Arc::clone(&places));
        let handshake = tokio::spawn(async move {
            // Messages are small and wait for nothing.
            let _ = socket.set_nodelay(true);
            if let Ok(Ok(tls)) = timeout(HANDSHAKE_TIME, acceptor.accept(socket)).await
                && let Ok(place) = places.try_acquire_owned()
            {
                tokio::spawn(async move {
                    pass_on(tls, &local).await;
                    drop(place);
                });
            }
        });
        handshakes.push_back(handshake.abort_handle());
        // A flood of connections does not hold up those that exist.
        tokio::task::yield_now().await;
    }
}

async fn pass_on(tls: tokio_rustls::server::TlsStream<TcpStream>, local: &Path) {
    // Zenoh is being closed if this fails.
    if let Ok(local) = UnixStream::connect(local).await {
        relay(tls, local).await;
    }
}
