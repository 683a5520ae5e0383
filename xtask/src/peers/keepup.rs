//! keepup: release build of the recorder with defaults, fed by the simulated source at full rate.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use keepup_measure::memory::Memory;
use keepup_measure::space::Space;
use serde_json::Value;

use super::contestant::{Contestant, Run, RunLimits, UNIT_BYTES};
use super::loopback::free_address;
use super::scratch::Scratch;
use super::tools::Tool;
use super::transfer::{Pair, transfer};

/// File system in memory.
const SHARED_MEMORY: &str = "/dev/shm";
/// Most bytes of a recording in memory.
const MEMORY_BYTES_MAX: u64 = 4_000_000_000;
/// Memory left for other programs and preallocated segments.
const MEMORY_SPARE_BYTES: u64 = 4 << 30;
/// Profile with events of 1 KiB. The source ignores its rate and sends at full speed.
const SMALL_PROFILE: &str = "name = \"small\"\ntitle = \"Events of 1 KiB\"\n\n[event]\nsize = \"1 KiB\"\n\n\
                             [source]\nrate = \"1000000 /s\"\n";

/// Destination of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Sealed, checksummed and discarded.
    Null,
    /// Volume in the directory of the run.
    Volume,
    /// Volume in memory.
    Memory,
}

/// Events of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Events {
    /// 256 KiB each, the built-in profile `csl`.
    Large,
    /// 1 KiB each.
    Small,
}

impl Events {
    fn bytes(self) -> u64 {
        match self {
            Self::Large => 256 << 10,
            Self::Small => 1 << 10,
        }
    }
}

/// Recorder with a target and a source.
pub(super) struct Keepup {
    pub(super) name: &'static str,
    pub(super) program: PathBuf,
    pub(super) target: Target,
    pub(super) events: Events,
    pub(super) streams: u32,
    pub(super) connections: u32,
}

impl Keepup {
    fn receiver(&self, address: SocketAddr, volume: &Path, memory: Option<&Scratch>) -> Command {
        let mut command = match memory {
            Some(memory) => mounted(memory.path(), volume),
            None => Command::new(&self.program),
        };
        if memory.is_some() {
            command.arg(&self.program);
        }
        command.args(["record", "--json", "--name", "peer", "--listen", &address.to_string()]);
        match self.target {
            Target::Null => command.arg("--to-null"),
            Target::Volume | Target::Memory => command.arg("--volume").arg(volume),
        };
        command
    }

    fn sender(&self, address: SocketAddr, directory: &Path, bytes: u64) -> Result<Command> {
        let mut command = Command::new(&self.program);
        command.arg("source");
        match self.events {
            Events::Large => command.arg("csl"),
            Events::Small => {
                let profile = directory.join("small.toml");
                fs::write(&profile, SMALL_PROFILE).with_context(|| format!("write {}", profile.display()))?;
                command.arg(profile)
            }
        };
        command.args(["--rate", "max", "--json", "--to", &address.to_string()]);
        command.args(["--events", &(bytes / self.events.bytes()).to_string()]);
        command.args(["--streams", &self.streams.to_string()]);
        command.args(["--connections", &self.connections.to_string()]);
        Ok(command)
    }
}

impl Contestant for Keepup {
    fn name(&self) -> &str {
        self.name
    }

    fn command(&self) -> String {
        let target = match self.target {
            Target::Null => "--to-null",
            Target::Volume => "--volume DIR",
            Target::Memory => "--volume TMPFS",
        };
        let kib = self.events.bytes() >> 10;
        let (streams, connections) = (self.streams, self.connections);
        let plural = |count: u32| if count == 1 { "" } else { "s" };
        format!(
            "`keepup record {target}`, from `keepup source --rate max`: events of {kib} KiB, {streams} \
             stream{} on {connections} connection{}",
            plural(streams),
            plural(connections)
        )
    }

    fn tool(&self) -> Option<&'static Tool> {
        None
    }

    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>> {
        let address = free_address()?;
        let volume = limits.directory.join("volume");
        fs::create_dir(&volume).with_context(|| format!("make {}", volume.display()))?;
        let in_memory = self.target == Target::Memory;
        let memory = in_memory.then(|| Scratch::below(Path::new(SHARED_MEMORY))).transpose()?;
        let bytes = if in_memory { memory_bytes(limits.bytes)? } else { limits.bytes };
        let transfer = transfer(Pair {
            receiver: self.receiver(address, &volume, memory.as_ref()),
            port: address.port(),
            sender: self.sender(address, limits.directory, bytes)?,
            // The recorder ends when everything is durable, and not before.
            file: None,
            limit: limits.time,
        })?;
        let durable = bytes_of(&transfer.receiver_said, "durable")?;
        ensure!(durable == bytes, "keepup recorded {durable} of {bytes} bytes");
        let accepted = parse(&transfer.sender_said)?["bytes_per_second"].as_f64();
        let events = Some(bytes / self.events.bytes());
        Ok(vec![Run { events, ..transfer.run(bytes, accepted) }])
    }
}

/// Command prefix that runs a program with `source` mounted on `target` in a private mount namespace, because
/// keepup refuses directories below `/dev`. The shell and the helper exec the program, so their CPU counts as
/// used before the sender.
fn mounted(source: &Path, target: &Path) -> Command {
    let mut command = Command::new("unshare");
    // A user namespace allows mounts without root, but not locked memory for the ring.
    if fs::metadata("/proc/self").is_ok_and(|process| process.uid() != 0) {
        command.arg("--map-root-user");
    }
    let script = "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(source).arg(target);
    command
}

/// Bytes that fit into memory now, at most `bytes`.
fn memory_bytes(bytes: u64) -> Result<u64> {
    let available_bytes = Memory::read(Path::new("/"))?.available_bytes;
    let free_bytes = Space::of(Path::new(SHARED_MEMORY))?.free_bytes;
    let fitting_bytes = fitting(bytes, available_bytes.min(free_bytes));
    ensure!(fitting_bytes > 0, "{SHARED_MEMORY} is too small: {available_bytes} bytes available");
    Ok(fitting_bytes)
}

fn fitting(bytes: u64, free_bytes: u64) -> u64 {
    bytes.min(MEMORY_BYTES_MAX).min(free_bytes.saturating_sub(MEMORY_SPARE_BYTES)) / UNIT_BYTES * UNIT_BYTES
}

fn parse(said: &str) -> Result<Value> {
    serde_json::from_str(said).context("parse the output of keepup")
}

/// Bytes in a column of the ledger of the recorder.
fn bytes_of(said: &str, column: &str) -> Result<u64> {
    parse(said)?[column]["bytes"]
        .as_u64()
        .with_context(|| format!("no {column} bytes in the output of keepup"))
}

#[cfg(test)]
#[path = "keepup_tests.rs"]
mod tests;
