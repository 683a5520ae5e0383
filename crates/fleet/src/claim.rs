//! One agent per host at a time.
//!
//! The agents of a controller that was killed end their recordings when their standard input is closed, or
//! after the orphan time. Until then they hold ports and volumes, so an agent of the next controller waits.
//! The claim is an abstract Unix socket: the kernel releases it with the process, however that ends. Its name
//! belongs to a network namespace, as the ports do.
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;

use crate::error::FleetError;

/// Interval between attempts.
const POLL: Duration = Duration::from_millis(50);

/// Claim of this machine as a host of a fleet, released when dropped.
#[derive(Debug)]
pub struct HostClaim {
    _socket: UnixListener,
}

impl HostClaim {
    /// Claims host `name` of the controller at `controller`. Calls `on_wait` once if another agent has the
    /// claim, and waits until it has ended; returns none if `is_stopped` first.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub fn take(
        controller: SocketAddr,
        name: &str,
        clock: &dyn Clock,
        is_stopped: &dyn Fn() -> bool,
        on_wait: &mut dyn FnMut(),
    ) -> Result<Option<Self>, FleetError> {
        let cannot = |error: std::io::Error| {
            FleetError::JoinInfo(Cause::new(format!("cannot claim the host: {error}")))
        };
        let address = address(controller, name).map_err(cannot)?;
        let mut has_waited = false;
        loop {
            match UnixListener::bind_addr(&address) {
                Ok(socket) => return Ok(Some(Self { _socket: socket })),
                Err(error) if error.kind() != ErrorKind::AddrInUse => return Err(cannot(error)),
                Err(_) if is_stopped() => return Ok(None),
                Err(_) => {}
            }
            if !std::mem::replace(&mut has_waited, true) {
                on_wait();
            }
            clock.sleep_until_ns(clock.now_ns().saturating_add(POLL.as_nanos() as u64));
        }
    }
}

/// Address of the claim. Names of hosts may be longer than an address.
fn address(controller: SocketAddr, name: &str) -> std::io::Result<UnixAddr> {
    let digest = blake3::hash(format!("{controller} {name}").as_bytes()).to_hex();
    UnixAddr::from_abstract_name(format!("keepup-fleet-agent-{}", &digest[..32]))
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
