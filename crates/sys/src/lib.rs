//! The only unsafe code of the project: memory shared with the kernel, the ring, thread placement, children.
//!
//! Everything that leaves this crate is safe to use: a [`pool::Block`] is owned by exactly one party at a
//! time (a thread or the kernel), and an engine gives a block back only when the kernel is done with it.
#![allow(unsafe_code)]

pub mod cache;
pub mod datagram;
pub mod engine;
pub mod error;
pub mod ethtool;
pub mod file;
pub mod pool;
pub mod process;
pub mod register;
pub mod regular;
pub mod socket;
pub mod tap;
pub mod thread;
pub mod vfio;
pub mod vme;
pub mod waker;

pub use error::SysError;

/// Alignment that direct I/O, memory pages and the recording format share, in bytes.
pub const PAGE_BYTES: usize = 4096;
