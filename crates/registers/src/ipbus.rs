//! IPbus 2.0: registers of boards behind a network, one packet of transactions in each datagram of UDP.
//!
//! Words have 32 bits, and so has an address, which counts words: the next word has the next address.
//!
//! [`IpbusClient`] numbers its packets, keeps several under way, and finds out about each lost one what was
//! lost, so that no transaction is done twice. [`IpbusTarget`] stands for a board, in tests and when a way of
//! access is tried out: memory instead of registers, and whatever faults are asked for. [`packet`] has the
//! bytes; it and the target's [`Machine`] know no socket.
//!
//! IPbus has one sequence of numbers for a target, not one for each client: only one client at a time may
//! number its packets. Any number of others can send packets with number 0, which are not checked.
mod client;
mod error;
pub mod packet;
mod simulator;
mod socket;

pub use client::{ClientCounters, ClientOptions, IpbusClient, WINDOW_MAX};
pub use error::IpbusError;
pub use simulator::{
    Faults, IDENTITY, IDENTITY_ADDRESS, IpbusTarget, Machine, TargetCounters, TargetOptions,
};

/// Port that boards usually listen at.
pub const PORT: u16 = 50_001;
