//! Reports drawn from a result directory alone.
