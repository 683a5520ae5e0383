//! SIMPLON, the HTTP interface of DECTRIS detectors (SIMPLON API reference 1.6 and 1.8): read the
//! configuration, arm, trigger, disarm.
//!
//! Invariants: every request has a time limit and every answer a size limit; redirects and proxies are not
//! followed; a name that a detector sends is checked before it becomes part of a URL. Calls block, so they
//! belong on a thread of their own.
mod client;
mod configuration;
mod detector;
mod error;
#[cfg(test)]
mod testing;
mod url;

pub use configuration::Configuration;
pub use detector::{ArmFailure, Detector};
pub use error::SimplonError;
pub use url::DetectorUrl;
