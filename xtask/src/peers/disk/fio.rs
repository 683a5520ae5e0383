//! fio as the disk tests use a disk: one file, a job for each phase, one after another in one process.

use std::time::Duration;

use crate::peers::contestant::Run;
use crate::peers::fio::{TOOL, jobs};
use crate::peers::program::Program;

/// The job that writes what others overwrite and read; it is not counted.
const FILL: &str = "fill";

/// How all jobs of a process do it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    /// Whether buffers lie in huge pages that are set aside.
    pub(super) huge: bool,
    /// Whether what is written differs from what was written before.
    pub(super) unique: bool,
    /// Whether the file is filled first; it grows otherwise.
    pub(super) filled: bool,
}

/// One job.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// Its name: that of the phase.
    pub(super) name: String,
    /// `write` or `read`.
    pub(super) verb: &'static str,
    /// Size of a request.
    pub(super) bytes: u64,
    /// How many are under way.
    pub(super) depth: u64,
    /// How long; until the end of the file where it is none.
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
    // One job stands for all, which differ in what the table says.
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

/// The jobs without the one that fills.
fn counted(jobs: Vec<Run>) -> Vec<Run> {
    jobs.into_iter().filter(|job| job.phase != FILL).collect()
}

#[cfg(test)]
#[path = "fio_tests.rs"]
mod tests;
