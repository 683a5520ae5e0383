//! Formulas for buses, links, disks, registers and CPUs from standards and arithmetic.
//!
//! Invariants: pure functions of numbers in base units (bytes, seconds, hertz, shares from 0 to 1),
//! each with its source. Constants of machines are in the catalog.

pub mod bus;
pub mod link;
pub mod register;
pub mod store;

#[cfg(test)]
#[path = "formulas_tests.rs"]
mod tests;
