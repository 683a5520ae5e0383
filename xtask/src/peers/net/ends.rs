//! A server and a client of the same program, each at its end of a wire; CPU of both by the kernel's account.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};

use super::wire::Wire;
use crate::peers::children::Running;
use crate::peers::contestant::{Contestant, Place, Run};
use crate::peers::tools::{Tool, typed};
use crate::peers::transfer::cpu_ns;

/// A server that was told to end, or that serves once, does so within this time.
const END_LIMIT: Duration = Duration::from_secs(10);

/// What a client says of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Said {
    /// Bytes that arrived.
    pub(super) bytes: u64,
    /// Datagrams that arrived.
    pub(super) datagrams: Option<u64>,
    /// Share of what was sent that did not arrive.
    pub(super) lost: Option<f64>,
    /// How long it took, seconds.
    pub(super) seconds: f64,
}

/// How a program is started at both ends.
pub(super) struct Ends {
    /// Its name in tables and flags.
    pub(super) name: &'static str,
    /// The program.
    pub(super) program: PathBuf,
    /// What somebody else has to install.
    pub(super) tool: Option<&'static Tool>,
    /// Between them.
    pub(super) wire: Rc<Wire>,
    /// Arguments of the server.
    pub(super) server: Vec<String>,
    /// The port that it listens on.
    pub(super) port: u16,
    /// Whether it serves until it is told to end.
    pub(super) stays: bool,
    /// Arguments of the client.
    pub(super) client: Vec<String>,
    /// Reads what the client printed.
    pub(super) read: fn(&str) -> Result<Said>,
}

impl Ends {
    /// One test with more arguments for the client: what it said, and CPU of both ends in ns.
    pub(super) fn once(&self, more: &[String], limit: Duration) -> Result<(Said, u64)> {
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

    /// Both command lines for people.
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

    fn run(&self, place: &Place<'_>) -> Result<Vec<Run>> {
        let (said, cpu_ns) = self.once(&[], place.limit)?;
        Ok(vec![Run {
            bytes: said.bytes,
            events: said.datagrams,
            seconds: said.seconds,
            cpu_ns: Some(cpu_ns),
            ..Run::default()
        }])
    }
}

/// The same, at the highest rate at which nothing is lost: doubled until something is, then halved in
/// between.
pub(super) struct Safe {
    /// The program, without a rate.
    pub(super) ends: Ends,
    /// Arguments for a rate in bytes per second.
    pub(super) rate: fn(f64) -> Vec<String>,
}

/// The first rate tried, bytes per second, and how often the gap is halved.
const FIRST_RATE: f64 = 32e6;
const HALVINGS: u32 = 4;
/// How often a rate is tried before it counts as lost.
const TRIES: u32 = 2;
/// No rate above this is tried.
const RATE_MAX: f64 = 4e9;
/// A client that sends less than this share of the rate cannot send it.
const KEPT_SHARE: f64 = 0.97;

impl Safe {
    /// What arrived at a rate, if nothing was lost and the rate was kept; tried twice, so that one stall of
    /// the machine does not end the search.
    fn holds(&self, rate: f64, limit: Duration) -> Result<Option<Said>> {
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

    fn run(&self, place: &Place<'_>) -> Result<Vec<Run>> {
        let (mut best, mut low, mut high) = (None, 0.0, FIRST_RATE);
        while high < RATE_MAX {
            let Some(said) = self.holds(high, place.limit)? else { break };
            (best, low, high) = (Some(said), high, high * 2.0);
        }
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            match self.holds(middle, place.limit)? {
                Some(said) => (best, low) = (Some(said), middle),
                None => high = middle,
            }
        }
        let said = best.context("something was lost at every rate")?;
        Ok(vec![Run { bytes: said.bytes, events: said.datagrams, seconds: said.seconds, ..Run::default() }])
    }
}
