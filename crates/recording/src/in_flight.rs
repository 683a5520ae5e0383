//! Writes that outlive their process. The kernel completes a direct write that was submitted, even after
//! the process was killed and reaped; until then it may still change the file, and its completion discards
//! pages that others wrote through the page cache.
//!
//! The recorder locks each segment that it creates. Such a write refers to the open file, and the kernel
//! keeps the lock as long as anything does.
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::RecordingError;
use crate::files::open_regular;

/// Interval between attempts.
const AGAIN: Duration = Duration::from_millis(10);
/// Attempts until the wait is given up: one minute.
const ATTEMPTS: u32 = 6000;

/// Locks a new segment, so that recovery notices writes to it that are in flight. File systems without locks
/// are accepted: there, recovery asks the user.
pub fn lock_segment(file: impl AsFd) {
    let _ = flock(file, FlockOperation::NonBlockingLockExclusive);
}

/// Waits until no write to the segment `path` is in flight.
///
/// # Errors
/// Writes are still in flight after a minute.
pub(crate) fn wait_for_writes(path: &Path) -> Result<(), RecordingError> {
    // Reading reports a file that cannot be opened.
    let Ok(file) = open_regular(path) else { return Ok(()) };
    for _ in 0..ATTEMPTS {
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(AGAIN),
            Ok(()) | Err(_) => return Ok(()),
        }
    }
    Err(RecordingError::Busy { path: path.into() })
}

#[cfg(test)]
#[path = "in_flight_tests.rs"]
mod tests;
