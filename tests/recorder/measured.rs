//! Qualifications whose outcome depends on the machine's speed.
mod bottlenecks;
