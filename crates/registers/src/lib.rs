//! Registers of cards and boards: read, written and measured by every way of access the target has.
//!
//! [`RegisterTest`] reads a target by all its ways in turns, after the note CERN-BE-2009-032, which measured
//! this for VME: single reads, block transfer and DMA at several depths. [`fits`] fits T(n) = a + b n to each
//! way and [`break_evens`] finds the depth from which one way beats another. [`get`] and [`set`] access
//! registers once. [`ipbus`] has a client for boards behind a network, and a simulated board.
//!
//! Invariants: nothing is written unless a [`TargetProfile`] allows it; a register that reading changes is
//! read only when the user names it; what lies outside the target is refused before any access; a function
//! that was bound to another driver is bound back. Absent: unsafe code (mappings and ioctls are in
//! `keepup-sys`), background loads, and the `Workload` contract.
//!
//! | what | where |
//! |---|---|
//! | target names, as in `pci:0000:00:04.0/bar0` | `target.rs`; VME windows in `vme.rs` |
//! | one file per way of access, one contract | `method.rs`, `method/` |
//! | what may be written, registers that reading changes, DMA | `profile.rs` |
//! | built-in profiles | `profiles/registers/` in the root of the repository |
//! | identity of a device | `identity.rs`, `device.rs` |
//! | binding a function to another driver and back | `bind.rs` |
//! | trials in turns; fits and break-evens | `test.rs`, `judge.rs` |
//! | IPbus bytes | `ipbus/packet.rs` |
//! | IPbus client: retries and recovery of lost packets | `ipbus/client/window.rs` |
//! | simulated IPbus target | `ipbus/simulator.rs`; without its socket in `ipbus/simulator/machine.rs` |
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
