//! Registers: IPbus, access methods, and devices in a virtual machine.
mod guest;
mod guest_backends;
mod ipbus;
mod measured;
mod read;
