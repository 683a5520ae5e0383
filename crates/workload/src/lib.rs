//! The Workload contract, its kinds, and background loads.
