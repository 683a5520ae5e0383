//! Server and client of a program at the two ends of a wire, with the CPU use of both.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};

use super::wire::Wire;
use crate::peers::children::Running;
use crate::peers::contestant::{Contestant, Run, RunLimits};
use crate::peers::tools::{Tool, typed};
use crate::peers::transfer::cpu_ns;

/// Timeout for the exit of a server.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Result reported by a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClientReport {
    /// Bytes received.
    pub(super) bytes: u64,
    /// Datagrams received.
    pub(super) datagrams: Option<u64>,
    /// Share of lost datagrams.
    pub(super) lost: Option<f64>,
    /// Duration, seconds.
    pub(super) seconds: f64,
}

/// Commands of a program for both ends.
pub(super) struct Ends {
    /// Name in tables and flags.
    pub(super) name: &'static str,
    /// Program.
    pub(super) program: PathBuf,
    /// External program that must be installed.
    pub(super) tool: Option<&'static Tool>,
    /// Wire between the ends.
    pub(super) wire: Rc<Wire>,
    /// Arguments of the server.
    pub(super) server: Vec<String>,
    /// Port of the server.
    pub(super) port: u16,
    /// Whether the server must be terminated.
    pub(super) stays: bool,
    /// Arguments of the client.
    pub(super) client: Vec<String>,
    /// Parses the output of the client.
    pub(super) read: fn(&str) -> Result<ClientReport>,
}

impl Ends {
    /// Runs a test with additional client arguments. Returns the report and the CPU time of both ends, ns.
    pub(super) fn once(&self, more: &[String], limit: Duration) -> Result<(ClientReport, u64)> {
        let program = self.program.to_string_lossy();
        let mut server = Running::start(self.wire.command(1, &program, &self.server))?;
        server.await_ready(self.port)?;
        let arguments = [&self.client[..], more].concat();
        let client = Running::start(self.wire.command(0, &program, &arguments))?;
        let (client, said) = client.finish(limit)?;
        if self.stays {
            let mut kill = Command::new("kill");
            kill.args(["-s", "TERM", &server.id().to_string()]).stdin(Stdio::null());
            kill.status().context("end the server")?;
        }
        let (server, _) = server.finish(END_LIMIT)?;
        let said = (self.read)(&said)?;
        Ok((said, cpu_ns(&client).saturating_add(cpu_ns(&server))))
    }

    /// Both command lines for display.
    fn shown(&self) -> String {
        format!("{} and {}", typed(&self.program, &self.server), typed(&self.program, &self.client))
    }
}

impl Contestant for Ends {
    fn name(&self) -> &str {
        self.name
    }

    fn command(&self) -> String {
        self.shown()
    }

    fn tool(&self) -> Option<&'static Tool> {
        self.tool
    }

    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>> {
        let (said, cpu_ns) = self.once(&[], limits.time)?;
        Ok(vec![Run {
            bytes: said.bytes,
            events: said.datagrams,
            seconds: said.seconds,
            cpu_ns: Some(cpu_ns),
            ..Run::default()
        }])
    }
}

/// Search for the highest rate without loss: doubles the rate until there is loss, then bisects.
pub(super) struct Safe {
    /// Program without a rate.
    pub(super) ends: Ends,
    /// Arguments that set the rate, bytes per second.
    pub(super) rate: fn(f64) -> Vec<String>,
}

/// First rate, bytes per second, and number of bisections.
const FIRST_RATE: f64 = 32e6;
const HALVINGS: u32 = 4;
/// Attempts per rate.
const TRIES: u32 = 2;
/// Highest rate tried.
const RATE_MAX: f64 = 4e9;
/// Smallest share of the rate that a client must send.
const KEPT_SHARE: f64 = 0.97;

impl Safe {
    /// Report at a rate, if there was no loss and the rate was reached. Tries twice, so that one stall of the
    /// machine does not end the search.
    fn holds(&self, rate: f64, limit: Duration) -> Result<Option<ClientReport>> {
        for _ in 0..TRIES {
            let (said, _) = self.ends.once(&(self.rate)(rate), limit)?;
            let is_kept = said.bytes as f64 / said.seconds >= KEPT_SHARE * rate;
            if said.lost == Some(0.0) && is_kept {
                return Ok(Some(said));
            }
        }
        Ok(None)
    }
}

impl Contestant for Safe {
    fn name(&self) -> &str {
        self.ends.name
    }

    fn command(&self) -> String {
        format!("{}, with {}", self.ends.shown(), (self.rate)(1e8).join(" "))
    }

    fn tool(&self) -> Option<&'static Tool> {
        self.ends.tool
    }

    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>> {
        let (mut best, mut low, mut high) = (None, 0.0, FIRST_RATE);
        while high < RATE_MAX {
            let Some(said) = self.holds(high, limits.time)? else { break };
            (best, low, high) = (Some(said), high, high * 2.0);
        }
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            match self.holds(middle, limits.time)? {
                Some(said) => (best, low) = (Some(said), middle),
                None => high = middle,
            }
        }
        let said = best.context("data was lost at every rate")?;
        Ok(vec![Run { bytes: said.bytes, events: said.datagrams, seconds: said.seconds, ..Run::default() }])
    }
}
