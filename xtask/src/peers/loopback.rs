//! Ports of the loopback interface.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Context, Result};

/// Free address chosen by the kernel. Another program could take it before it is used; then the run fails.
pub(super) fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind a port of the loopback")?;
    listener.local_addr().context("ask for the port that was bound")
}

/// Whether a program listens on the port in the network namespace of process `id`. Does not connect, because
/// some servers serve only one client.
pub(super) fn is_listening(id: u32, port: u16) -> bool {
    fs::read_to_string(format!("/proc/{id}/net/tcp")).is_ok_and(|table| lists(&table, port))
}

/// Whether /proc/net/tcp (proc_net(5)) lists a listener on the port.
fn lists(table: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let local = fields.next().and_then(|address| address.rsplit_once(':'));
        let own = local.and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        own == Some(port) && fields.nth(1) == Some(LISTEN)
    })
}

#[cfg(test)]
#[path = "loopback_tests.rs"]
mod tests;
