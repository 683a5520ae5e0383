//! Fleet tests whose outcome depends on the machine's speed.
mod qualify;
