//! The camera group's `testdisk`: one large file, several medium and many small ones; created, then
//! overwritten; each series timed from one `sync` to the end of the next.
//!
//! Source: program listing in the appendix of the ESRF camera computer's report. The order of calls
//! is that of the listing: per file open with truncation, write from one buffer of random data,
//! close.
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use keepup_measure::sum::Sums;
use keepup_results::DiskPhase;
use keepup_sys::file::{Access, open_truncated, sync_everything, write_all_at};
use keepup_sys::pool::{Block, Pool};

use super::fio::FioFile;
use super::phase::{PhaseClock, RATE_GUESS};
use super::{Cost, DiskMeasured, DiskTest, TestDirectories};
use crate::error::system;
use crate::file_io::mode::{EngineChoice, Mode, Space};
use crate::file_io::{IoDirection, Point};
use crate::random_data::{SEED, fill_random};
use crate::scratch::Scratch;
use crate::{Context, WorkloadError};

/// Buffer size and maximum write size, bytes.
pub const BUFFER_BYTES: usize = 16 << 20;

/// Interval between checks of the stop flag during a sync.
const LOOK: Duration = Duration::from_millis(50);

/// Files of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Number of files.
    pub files: u32,
    /// File size, bytes.
    pub bytes: u64,
}

/// Sequence of the listing: 1 x 4 GiB, 512 x 8 MiB, 2048 x 8 KiB.
pub const LISTING: [Series; 3] = [
    Series { files: 1, bytes: 4 << 30 },
    Series { files: 512, bytes: 8 << 20 },
    Series { files: 2048, bytes: 8 << 10 },
];

/// Quick version with 1/64 of the data (1/8 of the small files).
pub const QUICK: [Series; 3] = [
    Series { files: 1, bytes: 64 << 20 },
    Series { files: 8, bytes: 8 << 20 },
    Series { files: 256, bytes: 8 << 10 },
];

/// Parameters of the test.
#[derive(Clone, Debug)]
pub struct Testdisk {
    /// The files.
    pub sequence: [Series; 3],
    /// Direct I/O; the listing uses buffered I/O.
    pub direct: bool,
}

impl Testdisk {
    /// Paths of all files per series, numbered as in the listing.
    fn paths(&self, scratch: &mut Scratch) -> Vec<Vec<PathBuf>> {
        let mut numbers = 0..;
        let mut path = |_| scratch.file(&format!("data_{:04}", numbers.next().unwrap_or(0)));
        self.sequence.iter().map(|series| (0..series.files).map(&mut path).collect()).collect()
    }

    /// Runs one series; none if interrupted.
    fn series(
        &self,
        series: Series,
        paths: &[PathBuf],
        creates: bool,
        data: &Block,
        context: &mut Context,
    ) -> Result<Option<DiskPhase>, WorkloadError> {
        if creates {
            for path in paths {
                remove(path)?;
            }
        }
        if !sync_unless(&context.stop)? {
            return Ok(None);
        }
        let begun = PhaseClock::begin(context.clock.as_ref());
        for path in paths {
            if !self.write_file(path, series.bytes, data, &context.stop)? {
                return Ok(None);
            }
        }
        if !sync_unless(&context.stop)? {
            // Only previously queued writes are left, so the kernel's sync ends soon.
            paths.iter().for_each(|path| drop(open_truncated(path, Access::Buffered)));
            return Ok(None);
        }
        let name =
            format!("{} {} x {}", if creates { "create" } else { "overwrite" }, series.files, series.size());
        let bytes = u64::from(series.files) * series.bytes;
        Ok(Some(begun.end(context.clock.as_ref(), name, series.files.into(), bytes)))
    }

    /// Writes one file; false if interrupted.
    fn write_file(
        &self,
        path: &Path,
        bytes: u64,
        data: &Block,
        stop: &AtomicBool,
    ) -> Result<bool, WorkloadError> {
        let access = if self.direct { Access::Direct } else { Access::Buffered };
        let file: OwnedFd = open_truncated(path, access)?;
        let mut at = 0;
        while at < bytes {
            if stop.load(Ordering::Acquire) {
                return Ok(false);
            }
            let piece = (bytes - at).min(BUFFER_BYTES as u64);
            let action = format!("write to {}", path.display());
            write_all_at(&file, &data[..piece as usize], at).map_err(system(&action))?;
            at += piece;
        }
        Ok(true)
    }
}

/// Waits for a system-wide sync; false if interrupted. sync(2) is not interruptible, so it runs in
/// another thread.
fn sync_unless(stop: &AtomicBool) -> Result<bool, WorkloadError> {
    let (done, is_done) = channel();
    let sync = move || {
        sync_everything();
        // The receiver is gone after a stop.
        let _ = done.send(());
    };
    let thread = std::thread::Builder::new().name("ku-sync".into()).spawn(sync);
    thread.map_err(system("start a thread for sync"))?;
    loop {
        match is_done.recv_timeout(LOOK) {
            Ok(()) => return Ok(true),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Acquire) => return Ok(false),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(WorkloadError::Thread { name: "ku-sync" }),
        }
    }
}

impl Series {
    fn size(self) -> String {
        match self.bytes {
            bytes if bytes >= 1 << 30 => format!("{} GiB", bytes >> 30),
            bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
            bytes => format!("{} KiB", bytes >> 10),
        }
    }
}

fn remove(path: &Path) -> Result<(), WorkloadError> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(WorkloadError::System { action: format!("remove {}", path.display()), source: e })
        }
        _ => Ok(()),
    }
}

impl DiskTest for Testdisk {
    fn name(&self) -> &'static str {
        "testdisk"
    }

    fn cost(&self) -> Cost {
        let round: u64 =
            self.sequence.iter().map(|series| u64::from(series.files) * series.bytes).saturating_sum();
        let time = Duration::from_secs_f64(2.0 * round as f64 / RATE_GUESS);
        Cost { bytes_written: 2 * round, space_bytes: round, time }
    }

    fn fio(&self, volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        let access = if self.direct { Access::Direct } else { Access::Buffered };
        let (engine, space) = (EngineChoice::Plain, Space::New);
        let mut file = FioFile::new(&Mode { access, engine, space, ..Mode::default() });
        file.remark("the program brackets each series with sync(2); end_fsync stands for the one at its end");
        for (volume, verb) in volumes.iter().flat_map(|v| ["create", "overwrite"].map(|verb| (v, verb))) {
            for series in self.sequence {
                let point = Point { bytes: series.bytes.min(BUFFER_BYTES as u64) as usize, depth: 1 };
                let name = format!("{verb} {} x {}", series.files, series.size());
                file.job(&name, volume, IoDirection::Write, point, true);
                file.set("exec_prerun", "sync");
                file.set("filename_format", format!("keepup-fio-{}-{}.$filenum", series.files, series.bytes));
                file.set("nrfiles", series.files);
                file.set("openfiles", 1);
                file.set("file_service_type", "sequential");
                file.set("create_on_open", 1);
                file.set("filesize", series.bytes);
            }
        }
        Ok(file)
    }

    fn measure(
        &self,
        place: &mut TestDirectories,
        found: &mut DiskMeasured,
        context: &mut Context,
    ) -> Result<(), WorkloadError> {
        let mut pool = Pool::new(2 * BUFFER_BYTES)?;
        let Some(mut data) = pool.take(BUFFER_BYTES) else { return Ok(()) };
        fill_random(&mut data, SEED);
        let paths = self.paths(&mut place.first);
        for creates in [true, false] {
            for (series, paths) in self.sequence.into_iter().zip(&paths) {
                match self.series(series, paths, creates, &data, context)? {
                    Some(phase) => found.phases.push(phase),
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "testdisk_tests.rs"]
mod tests;
