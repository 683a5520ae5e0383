//! What helps against errors of listening.

/// Hint for an address that cannot be listened on.
pub fn listen_hint(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another program listens there: --listen ADDR:PORT with another port"
        }
        std::io::ErrorKind::AddrNotAvailable => "this machine has no such address: ip address",
        _ => "another address or port: --listen ADDR:PORT",
    }
}
