//! Register tests whose outcome depends on the machine's speed.
mod icount;
mod methods;
