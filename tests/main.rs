//! End to end: the real program, real sockets, real files, and relations that must hold between what it says.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]
#[path = "bad_clients.rs"]
mod bad_clients;
#[path = "bad_recordings.rs"]
mod bad_recordings;
#[path = "bottlenecks.rs"]
mod bottlenecks;
#[path = "campaign.rs"]
mod campaign;
#[path = "clients.rs"]
mod clients;
#[path = "common.rs"]
mod common;
#[path = "compare.rs"]
mod compare;
#[path = "disk.rs"]
mod disk;
#[path = "disk_block.rs"]
mod disk_block;
#[path = "disk_breaks.rs"]
mod disk_breaks;
#[path = "disk_cache.rs"]
mod disk_cache;
#[path = "disk_filesystems.rs"]
mod disk_filesystems;
#[path = "disk_lanes.rs"]
mod disk_lanes;
#[path = "disk_steady.rs"]
mod disk_steady;
#[path = "doctor.rs"]
mod doctor;
#[path = "drains.rs"]
mod drains;
#[path = "fallbacks.rs"]
mod fallbacks;
#[path = "faults.rs"]
mod faults;
#[path = "guest.rs"]
mod guest;
#[path = "guest_backends.rs"]
mod guest_backends;
#[path = "hosts.rs"]
mod hosts;
#[path = "kills.rs"]
mod kills;
#[path = "loads.rs"]
mod loads;
#[path = "mistakes.rs"]
mod mistakes;
#[path = "net.rs"]
mod net;
#[path = "net_faults.rs"]
mod net_faults;
#[path = "net_peers.rs"]
mod net_peers;
#[path = "predict.rs"]
mod predict;
#[path = "profiles.rs"]
mod profiles;
#[path = "qualify.rs"]
mod qualify;
#[path = "raw_client.rs"]
mod raw_client;
#[path = "recording.rs"]
mod recording;
#[path = "reduce.rs"]
mod reduce;
#[path = "register.rs"]
mod register;
#[path = "register_read.rs"]
mod register_read;
#[path = "replay.rs"]
mod replay;
#[path = "report.rs"]
mod report;
#[path = "reproduce.rs"]
mod reproduce;
#[path = "retention.rs"]
mod retention;
#[path = "run_control.rs"]
mod run_control;
#[path = "run_live.rs"]
mod run_live;
#[path = "serve.rs"]
mod serve;
#[path = "service.rs"]
mod service;
#[path = "soak.rs"]
mod soak;
#[path = "trace.rs"]
mod trace;
#[path = "trace_real.rs"]
mod trace_real;
#[path = "trace_record.rs"]
mod trace_record;
#[path = "trial.rs"]
mod trial;
#[path = "volumes.rs"]
mod volumes;
