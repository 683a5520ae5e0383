//! Writes and reads by character: one byte per call through a small buffer, as the C library's `putc` and
//! `getc` do in bonnie++. They show what one core needs per byte, not what a disk can do.
use std::hint::black_box;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use keepup_sys::file::forget_cached;

use super::super::DiskMeasured;
use super::super::phase::PhaseClock;
use super::BlockTest;
use crate::error::system;
use crate::{Context, WorkloadError};

/// Buffer of a stream of the C library, bytes.
const BUFFER_BYTES: usize = 4096;
/// Bytes between checks of the stop flag.
const LOOK_BYTES: u64 = 1 << 20;

fn cannot(verb: &str, path: &Path, source: std::io::Error) -> WorkloadError {
    system(&format!("{verb} {}", path.display()))(source)
}

/// Runs both phases; false if interrupted.
pub(super) fn run(
    test: &BlockTest,
    path: &Path,
    found: &mut DiskMeasured,
    context: &Context,
) -> Result<bool, WorkloadError> {
    let clock = context.clock.as_ref();
    let bytes = test.character_bytes;
    let is_stopped = |at: u64| at.is_multiple_of(LOOK_BYTES) && context.stop.load(Ordering::Acquire);
    let fail = |verb: &'static str| move |source| cannot(verb, path, source);

    let file = std::fs::File::create(path).map_err(fail("create"))?;
    let begun = PhaseClock::begin(clock);
    let mut writer = BufWriter::with_capacity(BUFFER_BYTES, file);
    for at in 0..bytes {
        if is_stopped(at) {
            return Ok(false);
        }
        writer.write_all(black_box(&[at as u8])).map_err(fail("write"))?;
    }
    let file = writer.into_inner().map_err(|error| fail("write")(error.into_error()))?;
    file.sync_data().map_err(fail("flush"))?;
    drop(file);
    found.phases.push(begun.end(clock, "write by character".to_owned(), 1, bytes));

    let file = OwnedFd::from(std::fs::File::open(path).map_err(fail("open"))?);
    forget_cached(&file, path)?;
    let file = std::fs::File::from(file);
    let begun = PhaseClock::begin(clock);
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut one = [0_u8; 1];
    for at in 0..bytes {
        if is_stopped(at) {
            return Ok(false);
        }
        reader.read_exact(&mut one).map_err(fail("read"))?;
        black_box(&one);
    }
    found.phases.push(begun.end(clock, "read by character".to_owned(), 1, bytes));
    Ok(true)
}
