//! IPbus 2.0: registers of boards on a network. Each UDP datagram contains one packet of transactions.
//!
//! Words and addresses have 32 bits. Addresses count words: the next word has the next address.
//!
//! [`IpbusClient`] numbers its packets and keeps several in flight. For each lost packet it finds out
//! whether the request or the reply was lost, so that no transaction is executed twice. [`IpbusTarget`]
//! simulates a board, with memory instead of registers and with configurable faults. [`packet`] encodes and
//! decodes packets; it and the target's [`TargetState`] do no I/O.
//!
//! A target has one sequence of packet numbers, not one per client: only one client at a time may number its
//! packets. Others can send packets with number 0, which are not checked.
mod client;
mod error;
pub mod packet;
mod simulator;
mod socket;

pub use client::{ClientCounters, ClientOptions, IpbusClient, WINDOW_MAX};
pub use error::IpbusError;
pub use simulator::{
    Faults, IDENTITY, IDENTITY_ADDRESS, IpbusTarget, TargetCounters, TargetOptions, TargetState,
};

/// Default port of boards.
pub const PORT: u16 = 50_001;
