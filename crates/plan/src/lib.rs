//! Inputs of a run: units, detector profiles, reductions and background loads, validated before
//! use.
//!
//! Pure except for [`load`], which reads profile files. A [`Profile`] from [`load`], [`builtin`] or
//! [`parse`] is valid; after changing its fields, call [`Profile::validate`] again.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]

mod builtin;
mod element;
mod embedded;
mod load;
mod load_spec;
mod place;
mod profile;
pub mod reduction;
mod toml_form;
pub mod units;

pub use builtin::builtin_names;
pub use element::Element;
pub use load::{ProfileError, builtin, close_names, load, parse};
pub use load_spec::{DiskWay, LoadSpec, LoadSpecError};
pub use place::{SourceLocation, key_at, line_of_key, line_of_offset};
pub use profile::{Burst, Compression, EventSize, Invalid, Placement, Profile, Reference, Transport};
