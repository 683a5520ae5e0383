//! Tests only: the real program as a child process, its own directory, disks with faults, powers taken away,
//! virtual machines with devices, and those that need root.
//!
//! Every wait has a limit; a child that outlives its test is ended by its id.

#![expect(clippy::panic, reason = "a helper of tests fails the test")]

pub mod cable;
pub mod disk;
pub mod filesystem;
pub mod guest;
pub mod powers;
pub mod program;
pub mod root;

pub use program::{Program, Run, free_directory};

/// Makes a named pipe: opening it as a file would wait for somebody at its other end.
///
/// # Panics
/// When the system refuses.
pub fn pipe(path: &std::path::Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let made = mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0);
    made.unwrap_or_else(|e| panic!("cannot make the pipe {}: {e}", path.display()));
}
