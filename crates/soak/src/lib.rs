//! Bit-error test: writes data, reads it back and compares it, thousands of times, and locates every wrong
//! byte.
//!
//! [`Soak`] is a `Workload`: it takes turns on its volumes until its [`Limits`] are reached. A turn copies
//! reference files or rewrites a file of self-describing pages. A [`SoakState`] keeps the [`Account`], in
//! memory or in a file from which a later session resumes.
//!
//! Invariants: every count in the account is also in the state file, line by line; an interrupted turn counts
//! for the part that it did and is repeated; all files are below a scratch directory except damaged ones,
//! which are kept and named in the result.
//!
//! | what | where |
//! |---|---|
//! | turns on volumes, as a `Workload` | [`Soak`] in `soak.rs` |
//! | settings, limits, modes of a turn, digests | [`SoakPlan`] in `plan.rs` |
//! | one turn: file I/O in pieces, times and counts | `turn.rs`, `piece.rs` |
//! | copies and their references | `copy.rs`, `reference.rs` |
//! | self-describing pages | `stamped.rs`; layout of a sector and its judgement in `stamp.rs` |
//! | location of wrong bytes: medium, page cache or path | `locate.rs` |
//! | the account and its state file | [`SoakState`] in `state.rs` |
//! | error counters of the devices | [`counters()`], [`compared()`] |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]
mod copy;
mod counters;
mod error;
mod locate;
mod piece;
mod plan;
mod reference;
mod soak;
#[doc(hidden)]
pub mod stamp;
mod stamped;
mod state;
mod turn;

pub use counters::{compared, counters};
pub use error::SoakError;
pub use plan::{DigestKind, Limits, Mode, ReferencePlan, SoakPlan};
pub use soak::{Soak, SoakMeasured};
pub use state::{Account, SoakStart, SoakState};
