//! Block traces: timed requests to storage. Reads many formats; analyzes, converts, captures and synthesizes
//! traces.
//!
//! All formats share one path: a reader parses its file into batches; one stage sorts, checks and counts; the
//! result is a [`Record`] with times in ns from the first request and offsets in bytes.
//!
//! Invariants: memory does not grow with the file; every change and every omission is counted
//! ([`Corrections`]); nothing is guessed: an ambiguous file is an error that names the deciding flag. Replay
//! is in `keepup-replay`.
//!
//! | what | where |
//! |---|---|
//! | opening a trace, gzip, format detection | [`Trace`] in `trace.rs`, [`detect_format`] |
//! | one file per format: blktrace, blkparse, blkreplay, fio iolog, biosnoop, simulators, CSV | `format/` |
//! | parsing of lines, numbers and times | `text.rs` |
//! | joining a request with its completion | `format/pending.rs` |
//! | times before and after the dispatch to the driver (Q2D, D2C) | [`StageTimes`] in `stages.rs` |
//! | sorting within a window, checks, corrections | `order.rs`; detection of a wrong unit in `units.rs` |
//! | the native format | `native/reader.rs`, `native/writer.rs` |
//! | `keepup trace info`: rates, sizes, footprint, locality | `info.rs`, `info/` |
//! | conversion | `convert.rs` |
//! | capture of keepup's own requests | `capture.rs`, from the tap of `keepup-sys` |
//! | synthetic traces of servers and desktops | [`personality`] |
//! | errors with file and line or byte | `error.rs` |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]
mod batch;
mod capture;
mod convert;
mod error;
mod format;
mod gzip;
mod header;
mod info;
mod mix;
mod native;
mod order;
pub mod personality;
mod record;
#[cfg(test)]
mod speed_tests;
mod stages;
mod text;
mod trace;
mod units;

pub use self::capture::{Capture, Captured};
pub use self::convert::{Converted, IologWriter, Target, convert, target_for};
pub use self::error::{FilePosition, TraceError};
pub use self::format::{Hints, TimeUnit, Waits};
pub use self::header::{Corrections, Format, Level, Origin, TraceClock, TraceDevice, TraceHeader, Unit};
pub use self::info::{
    DeviceDetail, DeviceInfo, INFO_VERSION, Jumps, OperationInfo, Outstanding, SizeClass, TraceInfo, describe,
};
pub use self::native::NativeWriter;
pub use self::order::WINDOW;
pub use self::record::{Flags, Operation, Record};
pub use self::stages::StageTimes;
pub use self::trace::{Trace, detect_format};
