//! fio job files equivalent to the disk tests, for verification with another program.
//!
//! Options of fio 3.33 and later. fio prepares files to read or overwrite before it starts its
//! clock, and its runtime includes the last flush (`end_fsync`), like a phase here.
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use keepup_sys::engine::EngineChoice;
use keepup_sys::file::{Access, Durability};

use super::lanes::Pace;
use crate::file_io::mode::{Mode, Space};
use crate::file_io::{IoDirection, Point};

/// A job file under construction.
#[derive(Clone, Debug, Default)]
pub struct FioFile {
    text: String,
}

impl FioFile {
    /// A job file with the global options.
    pub(super) fn new(mode: &Mode) -> Self {
        let mut file = Self { text: "[global]\n".to_owned() };
        file.set("thread", 1);
        match mode.engine {
            EngineChoice::Auto | EngineChoice::Ring => {
                file.set("ioengine", "io_uring");
                file.set("registerfiles", 1);
                file.set("fixedbufs", 1);
            }
            EngineChoice::Plain => file.set("ioengine", "psync"),
            EngineChoice::Mapped => file.set("ioengine", "mmap"),
        }
        file.set("direct", u8::from(mode.access == Access::Direct));
        if mode.durability == Durability::EachWrite {
            file.set("sync", "dsync");
        }
        file.set("fallocate", if mode.space == Space::New { "none" } else { "native" });
        file.set("overwrite", u8::from(mode.space == Space::Overwritten));
        file.set("end_fsync", 1);
        if mode.pattern.compressible > 0 {
            file.set("buffer_compress_percentage", mode.pattern.compressible);
        }
        if mode.pattern.duplicate > 0 {
            file.set("dedupe_percentage", mode.pattern.duplicate);
        }
        file
    }

    /// Adds an option to the latest job.
    pub(super) fn set(&mut self, option: &str, value: impl Display) {
        self.text += &format!("{option}={value}\n");
    }

    /// Adds a comment.
    pub(super) fn remark(&mut self, text: &str) {
        self.text += &format!("; {text}\n");
    }

    /// Adds a job. With `alone` it waits for all previous jobs.
    pub(super) fn job(&mut self, name: &str, directory: &Path, kind: IoDirection, point: Point, alone: bool) {
        // fio uses the colon as path separator.
        let directory = directory.display().to_string().replace(':', "\\:");
        let name = name.replace([',', '[', ']'], "");
        self.text += &format!("\n[{name}]\n");
        if alone {
            self.text += "stonewall\n";
        }
        self.set("directory", directory);
        self.set("rw", kind.verb());
        self.set("bs", point.bytes);
        self.set("iodepth", point.depth);
    }

    /// Makes the job time-based, looping over its file.
    pub(super) fn timed(&mut self, ramp: Duration, run: Duration) {
        self.text += "time_based\n";
        if !ramp.is_zero() {
            self.set("ramp_time", format!("{}ms", ramp.as_millis()));
        }
        self.set("runtime", format!("{}ms", run.as_millis().max(1)));
    }

    /// Sets the job's rate or think time.
    pub(super) fn paced(&mut self, pace: Pace, point: Point) {
        match pace {
            Pace::Free => {}
            Pace::Every(period) => {
                self.set("rate", (point.bytes as f64 / period.as_secs_f64()).round() as u64);
            }
            Pace::Pause(pause) => self.set("thinktime", pause.as_micros()),
        }
    }

    /// The complete text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
#[path = "fio_tests.rs"]
mod tests;
