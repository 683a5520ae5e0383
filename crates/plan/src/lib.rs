//! What to run: units, detector profiles, reductions, background loads, and plans checked before anything
//! is touched.
//!
//! Pure but for [`load`], which reads the profile files it is pointed at. A [`Profile`] that comes out of
//! [`load`], [`builtin`] or [`parse`] is valid; whoever changes its fields calls [`Profile::validate`] again.

mod builtin;
mod load;
mod load_spec;
mod place;
mod profile;
pub mod reduction;
mod toml_form;
pub mod units;

pub use builtin::{builtin, builtin_names};
pub use load::{ProfileError, close_names, load, parse};
pub use load_spec::{DiskWay, LoadSpec, LoadSpecError};
pub use place::{Place, key_at, line_of_key, line_of_offset};
pub use profile::{Burst, Element, EventSize, Invalid, Placement, Profile, Reference, Transport};
