//! Cause of a session that cannot be opened, which Zenoh does not report.
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use super::certificates::client;
use crate::tls::AgentTls;

/// Timeout of the connection and of each read.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Limit on reads in a handshake: the messages of a controller fit one.
const READS_MAX: usize = 16;

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Socket(io::Error),
    #[error("{0}")]
    Tls(#[from] rustls::Error),
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Silent,
    #[error("the connection was closed during the handshake")]
    Closed,
    #[error("the handshake does not end")]
    Endless,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Silent,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Socket(error),
        }
    }
}

/// Why no agent with `tls` has a session with the program at `address`.
pub(super) fn cause(address: SocketAddr, tls: Option<&AgentTls>) -> String {
    let socket = match TcpStream::connect_timeout(&address, TIMEOUT) {
        Ok(socket) => socket,
        Err(error) => return error.to_string(),
    };
    match (tls, handshake(socket, address, tls)) {
        (Some(_), Err(Failure::Tls(rustls::Error::InvalidCertificate(_)))) => {
            "its certificate is not that of the controller that started this agent".to_owned()
        }
        (Some(_), Err(why)) => format!("no TLS connection: {why}"),
        (None, Err(Failure::Tls(rustls::Error::InvalidCertificate(_)))) => {
            "it uses TLS, but this agent was started without".to_owned()
        }
        (Some(_), Ok(())) | (None, _) => "it refused the session".to_owned(),
    }
}

/// Makes a TLS handshake. Without `tls`, it fails at the certificate of a server that uses TLS.
fn handshake(mut socket: TcpStream, address: SocketAddr, tls: Option<&AgentTls>) -> Result<(), Failure> {
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    let name = ServerName::from(address.ip());
    let mut connection = ClientConnection::new(Arc::new(client(tls)?), name)?;
    for _ in 0..READS_MAX {
        while connection.wants_write() {
            connection.write_tls(&mut socket)?;
        }
        if !connection.is_handshaking() {
            return Ok(());
        }
        if connection.read_tls(&mut socket)? == 0 {
            return Err(Failure::Closed);
        }
        connection.process_new_packets()?;
    }
    Err(Failure::Endless)
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
