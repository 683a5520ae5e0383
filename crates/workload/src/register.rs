//! Registers of cards and boards: what one access costs, by each way there is.
//!
//! After the note CERN-BE-2009-032, which measured this for VME: single reads, block transfer and DMA at
//! several depths. A [`RegisterTest`] reads a target by all its ways in turns, and fits T(n) = set-up + n *
//! each.
mod bind;
mod device;
mod error;
mod get;
mod identity;
pub mod ipbus;
mod judge;
mod method;
mod profile;
mod set;
mod target;
mod test;
mod vme;

pub use bind::Binding;
pub use error::RegisterError;
pub use get::{Read, get};
pub use judge::{break_evens, fits};
pub use keepup_sys::register::{Span, Width};
pub use method::Store;
pub use profile::{DmaProfile, Identity, Places, Range, Register, TargetProfile};
pub use set::{Written, set};
pub use target::{Target, UioDevice, UioRegion};
pub use test::{RegisterSpec, RegisterTest};
pub use vme::VmeWindow;
