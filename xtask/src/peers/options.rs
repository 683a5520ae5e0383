//! Flags of the campaigns.

use std::path::PathBuf;
use std::time::Duration;

use keepup_plan::units::{Bytes, Span};

use super::contestant::UNIT_BYTES;

/// Usage text.
pub(crate) const USAGE: &str =
    "  peers record [--volume DIR] [--pairs N] [--only NAME,...] [--out FILE] [--gigabytes G]
        compare the recorder with iperf3, mbuffer and fio
  peers read [--volume DIR] [--pairs N] [--only NAME,...] [--out FILE] [--gigabytes G]
        compare reading a recording back with fio and cat; choose G above the memory
  peers disk [--volume DIR] [--pairs N] [--only NAME,...] [--out FILE]
             [--time TIME] [--file SIZE] [--testdisk PROGRAM]
        compare the disk tests with fio, bonnie++ and the testdisk listing; about 8 minutes on a disk of
        1.5 GB/s, 4 more with --testdisk
  peers net [--pairs N] [--only NAME,...] [--out FILE]
        compare the network tests with iperf3 and nuttcp, over loopback and, as root, between two network
        namespaces; about 12 minutes
  peers register [--pairs N] [--only NAME,...] [--out FILE]
        compare the register read loop with plain C; half a minute
  peers replay [--volume DIR] [--pairs N] [--only NAME,...] [--out FILE]
        compare the replay of traces with that of fio; about 18 minutes
        --volume     directory on the disk under test [./keepup-data]
        --pairs      rounds; each contestant runs once per round [5]
        --only       groups or contestants to run; groups of record: volume, path, streams,
                     small; of read: keepup-verify, fio-read, cat; of disk: sweep, cpu, growing,
                     testdisk, block; of net: tcp-loopback-1, tcp-loopback-4, udp-small,
                     udp-safe-loopback, tcp-cable-1, tcp-cable-4, udp-safe-cable; of register: loads; of
                     replay: timed-250, timed-2000, timed-50000, timed-file-250, timed-file-2000,
                     null-N, reads-N and mixed-N with 1, 32 or 128 in flight, dep
        --out        also write the tables to this file
        --gigabytes  data per run, GB [8]
        --time       measurement time per point of a sweep [500 ms]
        --file       file size [2 GiB]
        --testdisk   compiled program of the paper; without it the group testdisk is skipped";

/// Options of all campaigns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    /// Directory on the disk under test.
    pub(super) volume: PathBuf,
    /// Runs per contestant.
    pub(super) rounds: usize,
    /// Groups and contestants to run, all if empty.
    pub(super) only: Vec<String>,
    /// Output file in addition to standard output.
    pub(super) out: Option<PathBuf>,
}

impl Options {
    /// Number of rounds as text.
    pub(super) fn rounds_text(&self) -> String {
        format!("{} round{}", self.rounds, if self.rounds == 1 { "" } else { "s" })
    }
}

/// Additional options of `peers disk`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DiskOptions {
    /// Measurement time per point of a sweep.
    pub(super) time: Duration,
    /// File size, a multiple of the write size of every contestant.
    pub(super) file_bytes: u64,
    /// Program of the paper.
    pub(super) testdisk: Option<PathBuf>,
}

/// Parses the flags of `peers record` and `peers read`. Also returns the bytes per run, a multiple of the
/// write size of every contestant.
pub(super) fn record(flags: &[&str]) -> Result<(Options, u64), String> {
    let mut bytes = whole_units(8e9 as u64);
    let options = parse(flags, |flag, value| match flag {
        "--gigabytes" => {
            let gigabytes = value.parse::<f64>().ok().filter(|gb| (0.1..=10_000.0).contains(gb));
            let given = gigabytes.map(|gigabytes| whole_units((gigabytes * 1e9) as u64));
            set(&mut bytes, given.ok_or_else(|| format!("--gigabytes {value}: must be at least 0.1"))?)
        }
        _ => Err(format!("unknown flag {flag}")),
    })?;
    Ok((options, bytes))
}

/// Parses the flags of `peers disk`.
pub(super) fn disk(flags: &[&str]) -> Result<(Options, DiskOptions), String> {
    let mut disk = DiskOptions { time: Duration::from_millis(500), file_bytes: 2 << 30, testdisk: None };
    let options = parse(flags, |flag, value| match flag {
        "--time" => {
            let time = value.parse::<Span>().map_err(|why| why.to_string())?.0;
            let fits = (Duration::from_millis(100)..=Duration::from_secs(600)).contains(&time);
            set(
                &mut disk.time,
                fits.then_some(time).ok_or_else(|| format!("--time {value}: must be at least 100 ms"))?,
            )
        }
        "--file" => {
            let bytes = value.parse::<Bytes>().map_err(|why| why.to_string())?.0.next_multiple_of(64 << 20);
            let fits = (128 << 20..=1 << 40).contains(&bytes);
            set(
                &mut disk.file_bytes,
                fits.then_some(bytes).ok_or_else(|| format!("--file {value}: must be at least 128 MiB"))?,
            )
        }
        "--testdisk" => set(&mut disk.testdisk, Some(PathBuf::from(value))),
        _ => Err(format!("unknown flag {flag}")),
    })?;
    Ok((options, disk))
}

/// Parses the flags of a campaign without additional ones.
pub(super) fn plain(flags: &[&str]) -> Result<Options, String> {
    parse(flags, |flag, _| Err(format!("unknown flag {flag}")))
}

fn set<T>(place: &mut T, value: T) -> Result<(), String> {
    *place = value;
    Ok(())
}

/// Parses the common flags. `other` handles additional ones.
fn parse(flags: &[&str], mut other: impl FnMut(&str, &str) -> Result<(), String>) -> Result<Options, String> {
    let volume = PathBuf::from("keepup-data");
    let mut options = Options { volume, rounds: 5, only: Vec::new(), out: None };
    let mut rest = flags.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{flag} requires a value or is unknown"))?;
        match *flag {
            "--volume" => options.volume = PathBuf::from(value),
            "--out" => options.out = Some(PathBuf::from(value)),
            "--only" => options.only = value.split(',').map(str::to_owned).collect(),
            "--pairs" => {
                let rounds = value.parse().ok().filter(|rounds| (1..=1000).contains(rounds));
                options.rounds = rounds.ok_or_else(|| format!("--pairs {value}: must be from 1 to 1000"))?;
            }
            _ => other(flag, value)?,
        }
    }
    Ok(options)
}

fn whole_units(bytes: u64) -> u64 {
    bytes / UNIT_BYTES * UNIT_BYTES
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
