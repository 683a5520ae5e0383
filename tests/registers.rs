//! Registers: IPbus, the ways of access, and devices in a virtual machine.
mod guest;
mod guest_backends;
mod ipbus;
mod measured;
mod read;
