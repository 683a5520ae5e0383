//! The side of a host: a Unix socket for Zenoh, each connection to it passed on to the controller by TLS.
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{FAILURE_PAUSE, HANDSHAKE_TIME, Tunnel, relay};

/// Creates the Unix socket for Zenoh. Each connection to it opens a TLS connection to `address`. Returns the
/// path of the socket as Zenoh takes it. It is an abstract one, so a killed agent leaves no file; only
/// connections of this process are accepted.
///
/// # Errors
/// No socket or no thread.
pub(in super::super) fn dial(address: SocketAddr, config: ClientConfig) -> io::Result<(Tunnel, String)> {
    // A name of the kernel's choice.
    let listener = UnixListener::bind_addr(&UnixAddr::from_pathname("")?)?;
    listener.set_nonblocking(true)?;
    let own = listener.local_addr()?;
    let name = own.as_abstract_name().ok_or(io::ErrorKind::AddrNotAvailable)?;
    let path = format!("\0{}", String::from_utf8_lossy(name));
    let connector = TlsConnector::from(Arc::new(config));
    let tunnel = Tunnel::start(|| {
        let listener = tokio::net::UnixListener::from_std(listener)?;
        Ok(serve(listener, connector, address))
    })?;
    Ok((tunnel, path))
}

async fn serve(
    listener: tokio::net::UnixListener,
    connector: TlsConnector,
    address: SocketAddr,
) -> Infallible {
    let own = i32::try_from(std::process::id()).ok();
    // Zenoh has one connection, and another one only after the first has ended.
    loop {
        let Ok((local, _)) = listener.accept().await else {
            tokio::time::sleep(FAILURE_PAUSE).await;
            continue;
        };
        if local.peer_cred().is_ok_and(|peer| peer.pid() == own) {
            tokio::spawn(pass_on(local, connector.clone(), address));
        }
    }
}

/// Zenoh sees the end of `local` if this fails, and tries again.
async fn pass_on(local: UnixStream, connector: TlsConnector, address: SocketAddr) {
    let connect = async {
        let socket = TcpStream::connect(address).await?;
        // No delay by Nagle's algorithm: messages are small and urgent.
        socket.set_nodelay(true)?;
        connector.connect(ServerName::from(address.ip()), socket).await
    };
    if let Ok(Ok(tls)) = timeout(HANDSHAKE_TIME, connect).await {
        relay(tls, local).await;
    }
}
