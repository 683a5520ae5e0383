//! Disk tests, background loads, soak, traces and their replay.
mod block;
mod breaks;
mod cache;
mod filesystems;
mod lanes;
mod loads;
mod measured;
mod replay;
mod soak;
mod steady;
mod testdisk;
mod trace;
mod trace_real;
mod trace_record;
