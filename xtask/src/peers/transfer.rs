//! One receiver and one sender over the loopback, timed from the sender's start until all is durable.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use keepup_sys::process::Ended;

use super::children::Running;
use super::contestant::Run;

/// How often a receiver that is waited for is left in order to look after the sender.
const GLANCE: Duration = Duration::from_millis(500);
/// A sender has nothing left to do when its receiver has ended.
const SENDER_END_LIMIT: Duration = Duration::from_secs(10);

/// Who receives and who sends.
pub(super) struct Pair {
    /// The receiver; it is measured.
    pub(super) receiver: Command,
    /// The port that it listens on.
    pub(super) port: u16,
    /// The sender.
    pub(super) sender: Command,
    /// The file that the receiver leaves in the page cache: until that is on the disk the clock runs.
    pub(super) file: Option<PathBuf>,
    /// No longer than this.
    pub(super) limit: Duration,
}

/// What came of it.
pub(super) struct Transfer {
    seconds: f64,
    receiver: Ended,
    cpu_before_ns: Option<u64>,
    sender: Ended,
    /// What the receiver printed.
    pub(super) receiver_said: String,
    /// What the sender printed.
    pub(super) sender_said: String,
}

impl Transfer {
    /// The run that it was, given what arrived, and how fast by the sender's clock in bytes per second.
    pub(super) fn run(&self, bytes: u64, accepted: Option<f64>) -> Run {
        Run {
            bytes,
            seconds: self.seconds,
            accepted,
            cpu_ns: Some(cpu_ns(&self.receiver)),
            cpu_before_ns: self.cpu_before_ns,
            sender_cpu_ns: Some(cpu_ns(&self.sender)),
            resident_bytes_max: Some(self.receiver.resident_bytes_max),
            ..Run::default()
        }
    }
}

/// CPU inside and outside of the kernel, in ns.
pub(super) fn cpu_ns(ended: &Ended) -> u64 {
    ended.user_ns.saturating_add(ended.system_ns)
}

/// Lets one send to the other. Fails when one of them fails or the limit is passed; neither is left running.
pub(super) fn transfer(pair: Pair) -> Result<Transfer> {
    let mut receiver = Running::start(pair.receiver)?;
    receiver.await_ready(pair.port)?;
    let cpu_before_ns = receiver.cpu_ns();
    let start = Instant::now();
    let mut sender = Running::start(pair.sender)?;
    while receiver.wait(GLANCE)?.is_none() {
        if sender.wait(Duration::ZERO)?.is_some_and(|ended| !ended.status.success()) {
            // Says why.
            sender.finish(Duration::ZERO)?;
            bail!("the sender failed");
        }
        if start.elapsed() > pair.limit {
            bail!("the transfer did not end within {} s", pair.limit.as_secs());
        }
    }
    if let Some(path) = &pair.file {
        let synced = File::open(path).and_then(|file| file.sync_all());
        synced.with_context(|| format!("synchronise {}", path.display()))?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let (receiver, receiver_said) = receiver.finish(Duration::ZERO)?;
    let (sender, sender_said) = sender.finish(SENDER_END_LIMIT)?;
    Ok(Transfer { seconds, receiver, cpu_before_ns, sender, receiver_said, sender_said })
}
