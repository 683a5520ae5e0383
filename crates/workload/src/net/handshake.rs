//! Client side of the handshake: connects to a server, and both ends prove that they know the token.
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use keepup_peer::Endpoint;

use super::proof::{Credentials, Nonces, Side, is_nonce};
use super::wire::{self, CONTROL_MAGIC, Message, STRANGER_BYTES_MAX, VERSION};
use crate::error::NetError;

/// Timeout of a connection attempt.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(4);

/// A server and the credentials for it.
#[derive(Clone, Debug)]
pub struct Server {
    /// Address and port.
    pub endpoint: Endpoint,
    /// Token and source of nonces.
    pub credentials: Credentials,
    /// Name in results; the address by default.
    pub name: Option<String>,
}

impl Server {
    /// Name in results.
    #[must_use]
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.endpoint.to_string())
    }
}

/// Connects to a server; both ends prove that they know the token. `start` is the hint for an address where
/// nothing listens.
pub(super) fn authenticate(server: &Server, start: &'static str) -> Result<TcpStream, NetError> {
    let name = server.endpoint.to_string();
    let connect = |address: SocketAddr, source: std::io::Error| {
        let hint = match source.kind() {
            std::io::ErrorKind::ConnectionRefused => start,
            std::io::ErrorKind::TimedOut => "check the address and firewalls",
            _ => "check the route: ip route get ADDR",
        };
        NetError::Connect { server: address.to_string(), source, hint }
    };
    let mut stream = server.endpoint.try_each(|address| {
        TcpStream::connect_timeout(&address, CONNECT_MAX).map_err(|source| connect(address, source))
    })?;
    let gone = |why| NetError::Disconnected { peer: name.clone(), why: Some(why) };
    stream.set_read_timeout(Some(CONNECT_MAX)).map_err(gone)?;
    stream.set_write_timeout(Some(CONNECT_MAX)).map_err(gone)?;
    std::io::Write::write_all(&mut stream, &CONTROL_MAGIC).map_err(gone)?;
    let credentials = &server.credentials;
    let client = credentials.draw().map_err(|source| NetError::Random { source })?;
    let hello = Message::Hello { version: VERSION, nonce: client.clone() };
    let nonces = match exchange(&mut stream, &hello, &name)? {
        Message::Challenge { version: VERSION, nonce } if is_nonce(&nonce) => {
            Nonces { client, server: nonce }
        }
        Message::Challenge { version, .. } if version != VERSION => {
            return Err(NetError::Version { server: name, theirs: version, ours: VERSION });
        }
        _ => return Err(NetError::Protocol { peer: name, what: "no challenge message".into() }),
    };
    let proof = Message::Proof { proof: credentials.prove(Side::Client, &nonces) };
    match exchange(&mut stream, &proof, &name)? {
        Message::Welcome { proof, .. } if credentials.accepts(Side::Server, &nonces, &proof) => Ok(stream),
        Message::Welcome { .. } => Err(NetError::Impostor { server: name }),
        _ => Err(NetError::Protocol { peer: name, what: "no welcome message".into() }),
    }
}

/// Sends one message to a server during the handshake and returns the answer.
fn exchange(stream: &mut TcpStream, message: &Message, server: &str) -> Result<Message, NetError> {
    let gone = |why| NetError::Disconnected { peer: server.to_owned(), why };
    wire::write(stream, message).map_err(|why| gone(Some(why)))?;
    match wire::read(stream, STRANGER_BYTES_MAX).map_err(|why| gone(Some(why)))? {
        Some(Message::Refused { why }) => Err(NetError::Refused { server: server.to_owned(), why }),
        Some(answer) => Ok(answer),
        None => Err(gone(None)),
    }
}
