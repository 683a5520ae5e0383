//! Tests only: the real program as a child process, its own directory, and the powers that need root.
//!
//! Every wait has a limit; a child that outlives its test is ended by its id.

#![expect(clippy::panic, reason = "a helper of tests fails the test")]

pub mod program;
pub mod root;

pub use program::{Program, Run, free_directory};
