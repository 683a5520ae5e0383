//! Class of an error, which determines the exit code, and its hint.
//!
//! Invariants: the text of an error never contains its hint; each error type classifies every variant, so a
//! new variant does not compile until it has a class. No dependencies.
use std::borrow::Cow;

mod cause;

pub use cause::Cause;

/// Class of an error. The command line maps it to an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Data is lost or corrupt, or a peer broke the protocol.
    Failed,
    /// A mistake in the command or in a file that it names.
    Usage,
    /// Refused for safety.
    Refused,
    /// This environment cannot do it: no space, no permission, no such hardware, no peer.
    Environment,
    /// Ended by the user before there was a result.
    Interrupted,
}

/// An error with a class and, where a fix is known, a hint.
pub trait Diagnostic: std::error::Error {
    /// Class of this error.
    fn class(&self) -> ErrorClass;

    /// Command or setting that helps, without the word `hint`; that of the innermost cause that has one.
    fn hint(&self) -> Option<Cow<'_, str>>;
}
