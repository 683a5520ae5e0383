//! Disk tests and loads whose outcome depends on the machine's speed.
mod loads;
