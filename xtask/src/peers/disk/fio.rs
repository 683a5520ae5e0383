//! fio with the access pattern of the disk tests: one file, one job per phase, in one process.

use std::time::Duration;

use crate::peers::contestant::Run;
use crate::peers::fio::{TOOL, jobs};
use crate::peers::program::Program;

/// Name of the uncounted job that fills the file.
const FILL: &str = "fill";

/// Settings of all jobs of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    /// Whether buffers use reserved huge pages.
    pub(super) huge: bool,
    /// Whether the data differs from previous data.
    pub(super) unique: bool,
    /// Whether the file is filled first. Otherwise it grows.
    pub(super) filled: bool,
}

/// Job.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// Name of the phase.
    pub(super) name: String,
    /// `write` or `read`.
    pub(super) verb: &'static str,
    /// Request size, bytes.
    pub(super) bytes: u64,
    /// Queue depth.
    pub(super) depth: u64,
    /// Duration; until the end of the file if none.
    pub(super) time: Option<Duration>,
}

impl Setting {
    fn flags(self, file_bytes: u64) -> Vec<String> {
        let fixed = "--ioengine=io_uring --direct=1 --registerfiles=1 --fixedbufs=1 --thread=1 \
                     --filename=fio --output-format=json";
        let mut flags: Vec<String> = fixed.split_whitespace().map(str::to_owned).collect();
        flags.push(format!("--size={file_bytes}"));
        flags.push(format!("--fallocate={}", if self.filled { "posix" } else { "none" }));
        flags.push(format!("--scramble_buffers={}", u8::from(self.unique)));
        flags.extend(self.huge.then(|| "--mem=mmaphuge".to_owned()));
        flags
    }
}

impl Job {
    fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--name={}", self.name),
            "--stonewall".to_owned(),
            format!("--rw={}", self.verb),
            format!("--bs={}", self.bytes),
            format!("--iodepth={}", self.depth),
        ];
        if let Some(time) = self.time {
            flags.extend(["--time_based".to_owned(), format!("--runtime={}ms", time.as_millis())]);
        }
        flags.extend((self.verb == "write").then(|| "--end_fsync=1".to_owned()));
        flags
    }
}

/// fio with these jobs; `name` is its name in tables.
pub(super) fn program(name: &'static str, setting: Setting, file_bytes: u64, wanted: &[Job]) -> Program {
    let fill = Job { name: FILL.to_owned(), verb: "write", bytes: 1 << 20, depth: 8, time: None };
    let fills = setting.filled.then_some(&fill);
    let common = setting.flags(file_bytes);
    let arguments =
        common.iter().cloned().chain(fills.into_iter().chain(wanted).flat_map(Job::flags)).collect();
    // Shows one job; the others differ in size and depth.
    let first = wanted.first().map(Job::flags).unwrap_or_default();
    let many = if wanted.len() > 1 { format!(" (and {} more)", wanted.len() - 1) } else { String::new() };
    let shown =
        format!("{}{} {}{many}", common.join(" "), fills.map_or("", |_| " (fill),"), first[1..].join(" "));
    Program {
        name,
        program: TOOL.program.into(),
        arguments,
        shown: Some(shown),
        tool: Some(&TOOL),
        read: Box::new(|said| Ok(counted(jobs(said)?))),
    }
}

/// Jobs without the fill job.
fn counted(jobs: Vec<Run>) -> Vec<Run> {
    jobs.into_iter().filter(|job| job.phase != FILL).collect()
}

#[cfg(test)]
#[path = "fio_tests.rs"]
mod tests;
