//! Registers: what depends on the machine's speed.
mod icount;
mod ways;
