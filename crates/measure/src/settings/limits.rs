//! What this process may take: locked memory, descriptors, rings.

use std::path::Path;

use serde::Serialize;

use super::parsed;
use crate::environment::Reading;
use crate::text;

/// Bit of the capability to lock any amount of memory (linux/capability.h).
const CAP_IPC_LOCK: u32 = 14;
/// Bit of the capability to administer the system.
const CAP_SYS_ADMIN: u32 = 21;

/// A limit of the kernel on a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// So much, in the unit of the limit.
    At(u64),
    /// As much as there is.
    Unlimited,
}

/// A limit that a process may raise itself up to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// What holds now.
    pub soft: Limit,
    /// Up to where the process may raise it.
    pub hard: Limit,
}

/// What this process may take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Process {
    /// Memory that it may lock, in bytes.
    pub locked_bytes: Reading<Limits>,
    /// Files and sockets that it may have open.
    pub descriptors: Reading<Limits>,
    /// Whether it may lock memory beyond the limit.
    pub may_lock: Reading<bool>,
    /// Whether it administers the system.
    pub is_admin: Reading<bool>,
    /// 0: io_uring is allowed to all; 1: to some; 2: to none. Kernels before 6.6 have no such switch.
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

/// The limit called `name` in the text of /proc/PID/limits (proc_pid_limits(5)).
pub fn parse_limits(text: &str, name: &str) -> Option<Limits> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut limits = rest.split_ascii_whitespace().map(|word| match word {
        "unlimited" => Some(Limit::Unlimited),
        number => number.parse().ok().map(Limit::At),
    });
    Some(Limits { soft: limits.next()??, hard: limits.next()?? })
}
