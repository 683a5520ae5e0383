//! Register access to cards and boards: reads, writes and measurements by every method that a target has.
//!
//! [`RegisterTest`] reads a target by all its methods in turn. It follows the note CERN-BE-2009-032, which
//! measured VME: single reads, block transfers and DMA at several depths. [`fits`] fits T(n) = a + b n to
//! each method, and [`break_evens`] finds the depth from which one method beats another. [`get`] and [`set`]
//! access registers once. [`ipbus`] contains a client for boards on a network, and a simulated board.
//!
//! Invariants: nothing is written unless a [`TargetProfile`] allows it; a register that reading changes is
//! read only when the user names it; registers outside the target are refused before any access; a function
//! that was bound to another driver is bound back. Not in this crate: unsafe code (mappings and ioctls are
//! in `keepup-sys`), background loads, and the `Workload` trait.
//!
//! | what | where |
//! |---|---|
//! | target names, as in `pci:0000:00:04.0/bar0` | `target.rs`; VME windows in `vme.rs` |
//! | one trait, one file per access method | `method.rs`, `method/` |
//! | writable registers, registers that reading changes, DMA | `profile.rs` |
//! | built-in profiles | `profiles/registers/` in the root of the repository |
//! | identity of a device | `identity.rs`, `device.rs` |
//! | simulated devices that are ready to be read | `simulated.rs` |
//! | binding a function to another driver and back | `bind.rs` |
//! | trials; fits and break-evens | `test.rs`, `judge.rs` |
//! | IPbus packets | `ipbus/packet.rs` |
//! | IPbus client: retries and recovery of lost packets | `ipbus/client/window.rs` |
//! | simulated IPbus target | `ipbus/simulator.rs`; the part without a socket in `ipbus/simulator/state.rs` |
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
mod simulated;
mod target;
mod test;
mod vme;

pub use bind::Binding;
pub use error::RegisterError;
pub use get::{ReadRequest, get};
pub use judge::{break_evens, fits};
pub use keepup_sys::register::{Span, Width};
pub use method::RegisterWrite;
pub use profile::{ByteRange, DmaProfile, Identity, Register, RegisterRange, TargetProfile};
pub use set::{WriteOutcome, set};
pub use simulated::{SimulatedDevice, simulated_devices};
pub use target::{Target, UioDevice, UioRegion};
pub use test::{RegisterSpec, RegisterTest};
pub use vme::VmeWindow;
