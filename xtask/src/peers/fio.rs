//! fio: reference for the write rate of the disk.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::children::Running;
use super::contestant::{Contestant, Run, RunLimits};
use super::tools::Tool;
use super::transfer::cpu_ns;

/// Program.
pub(super) const TOOL: Tool = Tool { program: "fio", package: "fio" };

/// Block sizes to try for the fastest setting, MiB.
const BLOCKS_MIB: [u32; 2] = [1, 4];
/// Depths to try.
const DEPTHS: [u32; 4] = [4, 8, 16, 32];

/// fio with io_uring, direct I/O, registered files and buffers, one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fio {
    block_mib: u32,
    depth: u32,
}

impl Fio {
    /// Setting before the calibration.
    pub(super) const FIRST: Self = Self { block_mib: BLOCKS_MIB[0], depth: DEPTHS[0] };

    /// Settings to try, in order of memory use.
    pub(super) fn settings() -> Vec<Self> {
        let all = BLOCKS_MIB.into_iter().flat_map(|block_mib| DEPTHS.map(|depth| Self { block_mib, depth }));
        all.collect()
    }

    /// Setting as text.
    pub(super) fn setting(&self) -> String {
        format!("{} MiB x {}", self.block_mib, self.depth)
    }

    /// Flags without the file and its size.
    fn flags(&self) -> Vec<String> {
        let fixed = "--name=peer --rw=write --ioengine=io_uring --direct=1 --registerfiles=1 --fixedbufs=1 \
                     --fallocate=posix --scramble_buffers=0 --end_fsync=1 --thread=1 --output-format=json";
        let own = [format!("--bs={}m", self.block_mib), format!("--iodepth={}", self.depth)];
        fixed.split_whitespace().map(str::to_owned).chain(own).collect()
    }

    fn write(&self, file: &Path, bytes: u64, limit: Duration) -> Result<Run> {
        let mut command = Command::new(TOOL.program);
        let mut name = std::ffi::OsString::from("--filename=");
        name.push(file);
        command.args(self.flags()).arg(name).arg(format!("--size={bytes}"));
        let (ended, said) = Running::start(command)?.finish(limit)?;
        let job = jobs(&said)?.pop().context("no job in the output of fio")?;
        ensure!(job.bytes == bytes, "fio wrote {} of {bytes} bytes", job.bytes);
        Ok(Run {
            phase: String::new(),
            cpu_ns: Some(cpu_ns(&ended)),
            // It has no sender to wait for: preparing is part of the whole, and nothing is taken off.
            cpu_before_ns: Some(0),
            resident_bytes_max: Some(ended.resident_bytes_max),
            ..job
        })
    }
}

impl Contestant for Fio {
    fn name(&self) -> &str {
        "fio"
    }

    fn command(&self) -> String {
        let flags = self.flags();
        let shown = flags.iter().filter(|flag| !["--name", "--output"].iter().any(|f| flag.starts_with(f)));
        format!("`fio {}`", shown.map(String::as_str).collect::<Vec<_>>().join(" "))
    }

    fn tool(&self) -> Option<&'static Tool> {
        Some(&TOOL)
    }

    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>> {
        Ok(vec![self.write(&limits.directory.join("fio"), limits.bytes, limits.time)?])
    }
}

/// Parses the jobs in the JSON output of fio. The runtime of a job is from its first request to the end of
/// the last fsync (according to strace, fio 3.33), without process start, exit and preallocation. Its CPU is
/// that of the thread of the job.
pub(super) fn jobs(said: &str) -> Result<Vec<Run>> {
    // Warnings may stand in front.
    let json = said.find('{').map_or(said, |at| &said[at..]);
    let report: Value = serde_json::from_str(json).context("read what fio printed")?;
    report["jobs"].as_array().context("no jobs in the output of fio")?.iter().map(job).collect()
}

fn job(job: &Value) -> Result<Run> {
    let name = job["jobname"].as_str().unwrap_or_default();
    let error = job["error"].as_i64().context("fio did not say how its job ended")?;
    ensure!(error == 0, "the job {name} of fio ended with error {error}");
    let moved = |way: &str| job[way]["io_bytes"].as_u64();
    let figures = moved("write").zip(job["job_runtime"].as_u64());
    let (written, runtime_ms) = figures.context("fio did not say how much it wrote in which time")?;
    let ended = |way: &str| job[way]["total_ios"].as_u64();
    let percent = job["usr_cpu"].as_f64().zip(job["sys_cpu"].as_f64());
    Ok(Run {
        phase: name.to_owned(),
        bytes: written + moved("read").unwrap_or(0),
        events: ended("write").zip(ended("read")).map(|(writes, reads)| writes + reads),
        seconds: runtime_ms as f64 / 1e3,
        billed_ns: percent.map(|(user, system)| ((user + system) / 100.0 * runtime_ms as f64 * 1e6) as u64),
        ..Run::default()
    })
}

#[cfg(test)]
#[path = "fio_tests.rs"]
mod tests;
