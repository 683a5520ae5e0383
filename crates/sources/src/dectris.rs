//! DECTRIS detectors.
pub mod v2;
