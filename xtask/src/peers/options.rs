//! The flags of the campaigns.

use std::path::PathBuf;
use std::time::Duration;

use keepup_plan::units::{Bytes, Span};

use super::contestant::UNIT_BYTES;

/// What the flags are.
pub(crate) const USAGE: &str =
    "  peers record [--volume DIR] [--pairs N] [--only NAME,...] [--out FILE] [--gigabytes G]
        measure the recorder and its peers (iperf3, mbuffer, fio) in turns and print the tables
  peers disk [--volume DIR] [--pairs N] [--only NAME,...] [--out FILE]
             [--time TIME] [--file SIZE] [--testdisk PROGRAM]
        measure the disk tests and the programs that they are like (fio, bonnie++, the listing of testdisk) in
        turns; about 8 minutes on a disk of 1.5 GB/s, 4 more with --testdisk
  peers net [--pairs N] [--only NAME,...] [--out FILE]
        measure the network tests and the programs that they are like (iperf3, nuttcp) in turns, over loopback
        and, with root, between two network namespaces; about 12 minutes
  peers register [--pairs N] [--only NAME,...] [--out FILE]
        measure the loop that reads registers and a plain one in C in turns; half a minute
  peers replay [--volume DIR] [--pairs N] [--only NAME,...] [--out FILE]
        measure the replay of traces and fio's of the same traces in turns; about 18 minutes
        --volume     directory on the disk to write to, in a directory of its own [./keepup-data]
        --pairs      rounds; every contestant runs once in each [5]
        --only       groups or contestants, the others are left out; groups of record: volume, path, streams,
                     small; of disk: sweep, cpu, growing, testdisk, block; of net: tcp-loopback-1,
                     tcp-loopback-4, udp-small, udp-safe-loopback, tcp-cable-1, tcp-cable-4, udp-safe-cable;
                     of register: loads; of replay: timed-250, timed-2000, timed-50000, timed-file-250,
                     timed-file-2000, null-N, reads-N and mixed-N with 1, 32 or 128 under way, dep
        --out        write the tables to this file too
        --gigabytes  bytes of each run, in 10^9 [8]
        --time       how long each point of a sweep is measured [500 ms]
        --file       size of the file that is written and read [2 GiB]
        --testdisk   the paper's program, compiled; without it the group testdisk is skipped";

/// What every campaign is told.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    /// Directory on the disk to write to.
    pub(super) volume: PathBuf,
    /// How often each contestant runs.
    pub(super) rounds: usize,
    /// Groups and contestants that take part; all of them when empty.
    pub(super) only: Vec<String>,
    /// Where the tables go besides standard output.
    pub(super) out: Option<PathBuf>,
}

impl Options {
    /// How many rounds, for people.
    pub(super) fn rounds_told(&self) -> String {
        format!("{} round{}", self.rounds, if self.rounds == 1 { "" } else { "s" })
    }
}

/// What `peers disk` is told besides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DiskOptions {
    /// How long each point of a sweep is measured.
    pub(super) time: Duration,
    /// Bytes of the file that is written and read; a whole number of every contestant's writes.
    pub(super) file_bytes: u64,
    /// The paper's program.
    pub(super) testdisk: Option<PathBuf>,
}

/// Reads the flags of `peers record`, with the bytes of each run: a whole number of every contestant's
/// writes. Otherwise says what is wrong with them.
pub(super) fn record(flags: &[&str]) -> Result<(Options, u64), String> {
    let mut bytes = whole_units(8e9 as u64);
    let options = parse(flags, |flag, value| match flag {
        "--gigabytes" => {
            let gigabytes = value.parse::<f64>().ok().filter(|gb| (0.1..=10_000.0).contains(gb));
            let given = gigabytes.map(|gigabytes| whole_units((gigabytes * 1e9) as u64));
            set(&mut bytes, given.ok_or_else(|| format!("--gigabytes {value}: at least 0.1"))?)
        }
        _ => Err(format!("{flag} is not known")),
    })?;
    Ok((options, bytes))
}

/// Reads the flags of `peers disk`; otherwise says what is wrong with them.
pub(super) fn disk(flags: &[&str]) -> Result<(Options, DiskOptions), String> {
    let mut disk = DiskOptions { time: Duration::from_millis(500), file_bytes: 2 << 30, testdisk: None };
    let options = parse(flags, |flag, value| match flag {
        "--time" => {
            let time = value.parse::<Span>().map_err(|why| why.to_string())?.0;
            let fits = (Duration::from_millis(100)..=Duration::from_secs(600)).contains(&time);
            set(&mut disk.time, fits.then_some(time).ok_or_else(|| format!("--time {value}: from 100 ms"))?)
        }
        "--file" => {
            let bytes = value.parse::<Bytes>().map_err(|why| why.to_string())?.0.next_multiple_of(64 << 20);
            let fits = (128 << 20..=1 << 40).contains(&bytes);
            set(
                &mut disk.file_bytes,
                fits.then_some(bytes).ok_or_else(|| format!("--file {value}: from 128 MiB"))?,
            )
        }
        "--testdisk" => set(&mut disk.testdisk, Some(PathBuf::from(value))),
        _ => Err(format!("{flag} is not known")),
    })?;
    Ok((options, disk))
}

/// Reads the flags of a campaign that has none of its own; otherwise says what is wrong with them.
pub(super) fn plain(flags: &[&str]) -> Result<Options, String> {
    parse(flags, |flag, _| Err(format!("{flag} is not known")))
}

fn set<T>(place: &mut T, value: T) -> Result<(), String> {
    *place = value;
    Ok(())
}

/// Reads the flags that all campaigns have; `other` takes those that this one has besides.
fn parse(flags: &[&str], mut other: impl FnMut(&str, &str) -> Result<(), String>) -> Result<Options, String> {
    let volume = PathBuf::from("keepup-data");
    let mut options = Options { volume, rounds: 5, only: Vec::new(), out: None };
    let mut rest = flags.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{flag} needs a value, or is not known"))?;
        match *flag {
            "--volume" => options.volume = PathBuf::from(value),
            "--out" => options.out = Some(PathBuf::from(value)),
            "--only" => options.only = value.split(',').map(str::to_owned).collect(),
            "--pairs" => {
                let rounds = value.parse().ok().filter(|rounds| (1..=1000).contains(rounds));
                options.rounds = rounds.ok_or_else(|| format!("--pairs {value}: not a number from 1"))?;
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
