//! First line for an agent, with what it needs to join. The launcher writes it to standard input, so that the
//! token appears in no process list.
use std::io::{BufRead, Read as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use keepup_error::Cause;
use keepup_peer::Token;
use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::message::HostId;
use crate::timing::Timing;
use crate::tls::AgentTls;

/// Version of the line. Up to 3, it was that of the messages, which the controller checks in each heartbeat.
const VERSION: u32 = 4;
/// Longest line, bytes.
const LINE_BYTES_MAX: usize = 60_000;

/// Parameters of an agent.
#[derive(Clone, Debug)]
pub struct JoinInfo {
    /// Name of the fleet.
    pub fleet: String,
    /// Address of the controller.
    pub controller: SocketAddr,
    /// Number of the host.
    pub host: HostId,
    /// Token of the host for this session.
    pub token: Token,
    /// Token that all hosts share for this session.
    pub shared: Token,
    /// Certificates for TLS; without them, the connection to the controller is plain TCP.
    pub tls: Option<AgentTls>,
    /// How long the controller waits for the host to join.
    pub join_time: Duration,
    /// Intervals, leases and deadlines.
    pub timing: Timing,
    /// Directories that the agent may use.
    pub volumes: Vec<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Form {
    version: u32,
    fleet: String,
    controller: SocketAddr,
    host: HostId,
    token: String,
    shared: String,
    tls: Option<AgentTls>,
    join_ns: u64,
    timing: Timing,
    volumes: Vec<PathBuf>,
}

impl JoinInfo {
    /// The line with its end.
    ///
    /// # Errors
    /// A line that is too long, or a path that is not UTF-8.
    pub fn to_line(&self) -> Result<String, FleetError> {
        let Self { fleet, controller, host, token, shared, tls, join_time, timing, volumes } = self.clone();
        let [token, shared] = [token, shared].map(|token| token.reveal().to_owned());
        let join_ns = u64::try_from(join_time.as_nanos()).unwrap_or(u64::MAX);
        let version = VERSION;
        let form = Form { version, fleet, controller, host, token, shared, tls, join_ns, timing, volumes };
        let line = serde_json::to_string(&form).map_err(|error| invalid(error.to_string()))?;
        match line.len() < LINE_BYTES_MAX {
            true => Ok(line + "\n"),
            false => Err(invalid("it is too long: use fewer volumes")),
        }
    }

    /// Reads the line, and no byte after it.
    ///
    /// # Errors
    /// An end before the line, a line that is too long, of another version or malformed.
    pub fn read(from: &mut impl BufRead) -> Result<Self, FleetError> {
        let line = read_line(from)?;
        let form: Form = serde_json::from_slice(&line).map_err(|error| other_version(&line, &error))?;
        let Form { version, fleet, controller, host, token, shared, tls, join_ns, timing, volumes } = form;
        if version != VERSION {
            return Err(of_version(version));
        }
        let parse = |text: &str| Token::new(text).map_err(|error| invalid(error.to_string()));
        let (token, shared) = (parse(&token)?, parse(&shared)?);
        let join_time = Duration::from_nanos(join_ns);
        Ok(Self { fleet, controller, host, token, shared, tls, join_time, timing, volumes })
    }
}

fn read_line(from: &mut impl BufRead) -> Result<Vec<u8>, FleetError> {
    let mut line = Vec::new();
    let limit = LINE_BYTES_MAX as u64;
    from.take(limit).read_until(b'\n', &mut line).map_err(|error| invalid(error.to_string()))?;
    match line.pop() {
        Some(b'\n') => Ok(line),
        Some(_) if line.len() + 1 == LINE_BYTES_MAX => Err(invalid("the join line is too long")),
        Some(_) | None => Err(invalid("no join line on standard input")),
    }
}

fn other_version(line: &[u8], error: &serde_json::Error) -> FleetError {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    match serde_json::from_slice::<Versioned>(line) {
        Ok(Versioned { version }) if version != VERSION => of_version(version),
        _ => invalid(error.to_string()),
    }
}

fn of_version(theirs: u32) -> FleetError {
    FleetError::JoinInfo(
        Cause::new(format!("the controller uses join line version {theirs}, this agent {VERSION}"))
            .with_hint("install the same keepup on all hosts"),
    )
}

fn invalid(why: impl Into<String>) -> FleetError {
    FleetError::JoinInfo(
        Cause::new(why)
            .with_hint("agents are started by `keepup fleet up`, with this line on standard input"),
    )
}

#[cfg(test)]
#[path = "join_info_tests.rs"]
mod tests;
