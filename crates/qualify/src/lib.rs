//! Trials, rate search, ceilings, bottleneck and verdict.

pub mod search;
