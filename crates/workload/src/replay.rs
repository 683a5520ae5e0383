//! Recorded and made-up accesses to storage, and what is done with them.
pub mod personality;
pub mod trace;
