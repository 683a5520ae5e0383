//! One agent per host at a time.
//!
//! The agents of a controller that was killed end their recordings when their standard input is closed, or
//! after the orphan time. Until then they hold ports and volumes, so an agent of the next controller waits.
//! The claim is an abstract Unix socket: the kernel releases it with the process, however that ends. Its name
//! belongs to a network namespace, as the ports do.
use std::io::ErrorKind;
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
    /// Claims host `name` of the fleet `fleet`, whatever address its controller has. Calls `on_wait` once if
    /// another agent has the claim, and waits until it has ended, for `limit` at most; returns none if
    /// `is_stopped` first.
    ///
    /// # Errors
    /// The socket cannot be created, or the other agent has not ended in time.
    pub fn take(
        fleet: &str,
        name: &str,
        limit: Duration,
        clock: &dyn Clock,
        is_stopped: &dyn Fn() -> bool,
        on_wait: &mut dyn FnMut(),
    ) -> Result<Option<Self>, FleetError> {
        let cannot = |error: std::io::Error| {
            FleetError::JoinInfo(Cause::new(format!("cannot claim the host: {error}")))
        };
        let address = address(fleet, name).map_err(cannot)?;
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = clock.now_ns().saturating_add(limit_ns);
        let mut has_waited = false;
        loop {
            match UnixListener::bind_addr(&address) {
                Ok(socket) => return Ok(Some(Self { _socket: socket })),
                Err(error) if error.kind() != ErrorKind::AddrInUse => return Err(cannot(error)),
                Err(_) if is_stopped() => return Ok(None),
                Err(_) if clock.now_ns() >= until_ns => return Err(still_there(name, limit)),
                Err(_) => {}
            }
            if !std::mem::replace(&mut has_waited, true) {
                on_wait();
            }
            clock.sleep_until_ns(clock.now_ns().saturating_add(POLL.as_nanos() as u64));
        }
    }
}

fn still_there(name: &str, limit: Duration) -> FleetError {
    let why = format!("an earlier agent of this host has not ended within {} s", limit.as_secs_f64());
    let hint = format!("find it on the host: pgrep -af 'fleet agent --name {name}'");
    FleetError::JoinInfo(Cause::new(why).with_hint(hint))
}

/// Address of the claim. Names may be longer than an address.
fn address(fleet: &str, name: &str) -> std::io::Result<UnixAddr> {
    // The length keeps pairs apart whose texts are the same together.
    let digest = blake3::hash(format!("{} {fleet} {name}", fleet.len()).as_bytes()).to_hex();
    UnixAddr::from_abstract_name(format!("keepup-fleet-agent-{}", &digest[..32]))
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
