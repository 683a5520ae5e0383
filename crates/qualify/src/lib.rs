//! Trials, rate search, ceilings, bottleneck and verdict.
