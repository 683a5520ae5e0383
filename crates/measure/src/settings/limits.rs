//! Limits of this process: locked memory, file descriptors, io_uring.

use std::path::Path;

use serde::Serialize;

use super::parsed;
use crate::environment::Reading;
use crate::text;

/// Bit of CAP_IPC_LOCK (linux/capability.h).
const CAP_IPC_LOCK: u32 = 14;
/// Bit of CAP_SYS_ADMIN.
const CAP_SYS_ADMIN: u32 = 21;

/// A resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Value in the unit of the limit.
    At(u64),
    /// Unlimited.
    Unlimited,
}

/// Soft and hard resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Current limit.
    pub soft: Limit,
    /// Upper bound for the soft limit.
    pub hard: Limit,
}

/// Limits of this process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Process {
    /// Locked memory, bytes.
    pub locked_bytes: Reading<Limits>,
    /// Open files and sockets.
    pub descriptors: Reading<Limits>,
    /// Whether it may exceed the limit of locked memory.
    pub may_lock: Reading<bool>,
    /// Whether it has CAP_SYS_ADMIN.
    pub is_admin: Reading<bool>,
    /// 0: io_uring is allowed for all; 1: for some; 2: for none. Kernels before 6.6 have no such
    /// switch.
    pub io_uring_disabled: Reading<u64>,
}

impl Process {
    pub(super) fn collect(root: &Path) -> Self {
        let limits = |name: &'static str| {
            parsed(root, "proc/self/limits", "it does not list the limit", |text| parse_limits(text, name))
        };
        let capability = |bit: u32| {
            let why = "it lists no effective capabilities";
            parsed(root, "proc/self/status", why, |text| {
                let mask = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
                Some(u64::from_str_radix(mask.trim(), 16).ok()? & (1 << bit) != 0)
            })
        };
        Self {
            locked_bytes: limits("Max locked memory"),
            descriptors: limits("Max open files"),
            may_lock: capability(CAP_IPC_LOCK),
            is_admin: capability(CAP_SYS_ADMIN),
            io_uring_disabled: text::read_number(root, "proc/sys/kernel/io_uring_disabled").into(),
        }
    }
}

/// Parses limit `name` in /proc/PID/limits (proc_pid_limits(5)).
pub(crate) fn parse_limits(text: &str, name: &str) -> Option<Limits> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut limits = rest.split_ascii_whitespace().map(|word| match word {
        "unlimited" => Some(Limit::Unlimited),
        number => number.parse().ok().map(Limit::At),
    });
    Some(Limits { soft: limits.next()??, hard: limits.next()?? })
}
