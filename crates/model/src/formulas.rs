//! What standards and arithmetic say about buses, links, disks, registers and processors.
//!
//! Invariants: pure functions of numbers in base units (bytes, seconds, hertz, shares from 0 to 1); each says
//! where it is from. A machine's constants are not here but in the catalogue.

pub mod bus;
pub mod link;
pub mod register;
pub mod store;

#[cfg(test)]
#[path = "formulas_tests.rs"]
mod tests;
