//! Transfer from a sender to a receiver over loopback, timed from the start of the sender until all data is
//! durable.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use keepup_sys::process::Ended;

use super::children::Running;
use super::contestant::Run;

/// Interval between checks of the sender while waiting for the receiver.
const SENDER_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Timeout for the exit of the sender after the receiver has ended.
const SENDER_END_LIMIT: Duration = Duration::from_secs(10);

/// Receiver and sender.
pub(super) struct Pair {
    /// Measured receiver.
    pub(super) receiver: Command,
    /// Port of the receiver.
    pub(super) port: u16,
    /// Sender.
    pub(super) sender: Command,
    /// File that the receiver leaves in the page cache. Its fsync is part of the measured time.
    pub(super) file: Option<PathBuf>,
    /// Time limit.
    pub(super) limit: Duration,
}

/// Finished transfer.
pub(super) struct Transfer {
    seconds: f64,
    receiver: Ended,
    cpu_before_ns: Option<u64>,
    sender: Ended,
    /// Output of the receiver.
    pub(super) receiver_said: String,
    /// Output of the sender.
    pub(super) sender_said: String,
}

impl Transfer {
    /// Converts to a run, from the bytes received and the rate by the clock of the sender.
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

/// User and system CPU time, ns.
pub(super) fn cpu_ns(ended: &Ended) -> u64 {
    ended.user_ns.saturating_add(ended.system_ns)
}

/// Runs a transfer. Fails if a program fails or the limit is exceeded. Both programs are stopped in any case.
pub(super) fn transfer(pair: Pair) -> Result<Transfer> {
    let mut receiver = Running::start(pair.receiver)?;
    receiver.await_ready(pair.port)?;
    let cpu_before_ns = receiver.cpu_ns();
    let start = Instant::now();
    let mut sender = Running::start(pair.sender)?;
    while receiver.wait(SENDER_CHECK_INTERVAL)?.is_none() {
        if sender.wait(Duration::ZERO)?.is_some_and(|ended| !ended.status.success()) {
            // Returns its error message.
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
