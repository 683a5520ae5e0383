//! The only unsafe code of the project: memory shared with the kernel, io_uring, thread
//! placement, child processes, device registers, temporary files in place of memory, state of the clock,
//! addresses of interfaces.
//!
//! The public API is safe: a [`pool::Block`] has exactly one owner at a time (a thread or the
//! kernel), and an engine returns a block only after the kernel has finished with it.
#![allow(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]

pub mod addresses;
pub mod cache;
pub mod datagram;
pub mod engine;
pub mod error;
pub mod ethtool;
pub mod file;
pub mod io_trace;
pub mod lease;
pub mod lock;
pub mod nvme;
pub mod output;
pub mod pool;
pub mod prefetch;
pub mod process;
pub mod read_ahead;
pub mod register;
pub mod regular;
pub mod ring;
pub mod socket;
pub mod spill;
pub mod sync;
pub mod thread;
pub mod timekeeping;
pub mod vfio;
pub mod vme;
pub mod waker;

pub use error::SysError;

/// Common alignment of direct I/O, memory pages and the recording format, in bytes.
pub const PAGE_BYTES: usize = 4096;
