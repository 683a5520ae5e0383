//! Test helpers: child processes, temporary directories, faulty disks, removed privileges, virtual
//! machines with devices, helpers that need root, and rules by which measured tests decide.
//!
//! Every wait has a limit; a child that outlives its test is killed by its id.

#![expect(clippy::panic, reason = "a helper of tests fails the test")]

pub mod cable;
pub mod disk;
pub mod filesystem;
pub mod guest;
pub mod powers;
pub mod program;
pub mod root;
pub mod rule;
pub mod switch;

pub use program::{Program, Run, free_directory};

/// Creates a named pipe; opening it as a file would block until the other end is opened.
///
/// # Panics
/// System error.
pub fn pipe(path: &std::path::Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let made = mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0);
    made.unwrap_or_else(|e| panic!("cannot make the pipe {}: {e}", path.display()));
}
