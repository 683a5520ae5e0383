//! The flags of a campaign.

use std::path::PathBuf;

use super::contestant::UNIT_BYTES;

/// What the flags are.
pub(crate) const USAGE: &str =
    "  peers record [--volume DIR] [--pairs N] [--gigabytes G] [--only NAME,...] [--out FILE]
        measure the recorder and its peers (iperf3, mbuffer, fio) in turns and print the tables
        --volume     directory on the disk to write to, in a directory of its own [./keepup-data]
        --pairs      rounds; every contestant runs once in each [5]
        --gigabytes  bytes of each run, in 10^9 [8]
        --only       groups (volume, path, streams, small) or contestants, the others are left out
        --out        write the tables to this file too";

/// What a campaign is to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    /// Directory on the disk to write to.
    pub(super) volume: PathBuf,
    /// How often each contestant runs.
    pub(super) rounds: usize,
    /// Bytes of each run: a whole number of every contestant's writes.
    pub(super) bytes: u64,
    /// Groups and contestants that take part; all of them when empty.
    pub(super) only: Vec<String>,
    /// Where the tables go besides standard output.
    pub(super) out: Option<PathBuf>,
}

/// Reads the flags; otherwise says what is wrong with them.
pub(super) fn parse(flags: &[&str]) -> Result<Options, String> {
    let mut options = Options {
        volume: PathBuf::from("keepup-data"),
        rounds: 5,
        bytes: whole_units(8.0),
        only: Vec::new(),
        out: None,
    };
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
            "--gigabytes" => {
                let gigabytes = value.parse().ok().filter(|gb| (0.1..=10_000.0).contains(gb));
                options.bytes =
                    gigabytes.map(whole_units).ok_or_else(|| format!("--gigabytes {value}: at least 0.1"))?;
            }
            _ => return Err(format!("{flag} is not known")),
        }
    }
    Ok(options)
}

fn whole_units(gigabytes: f64) -> u64 {
    (gigabytes * 1e9) as u64 / UNIT_BYTES * UNIT_BYTES
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
