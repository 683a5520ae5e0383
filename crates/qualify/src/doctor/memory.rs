//! Rules for memory and for this process's limits.
use keepup_measure::settings::Limit;
use keepup_plan::units::Bytes;
use keepup_results::DoctorFinding;

use super::{Case, FAST, FindingExt, Subject, either, read, size};

/// Default block memory of the recorder, bytes, and its minimum in units of the largest event.
const POOL_BYTES: u64 = 512 << 20;
const POOL_EVENTS: u64 = 8;
/// File descriptors besides connections: segments, journals, rings.
const DESCRIPTORS: u64 = 256;
/// Amount of dirty data above which write-back disturbs other writers, bytes (our choice).
const WAVE_BYTES: u64 = 8 << 30;

fn pool_bytes(case: &Case<'_>) -> u64 {
    POOL_BYTES.max(POOL_EVENTS.saturating_mul(case.needs.event_bytes_max))
}

/// Zone reclaim: a node evicts its page cache before allocating on another node.
pub(super) fn zone_reclaim(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.node_count() < 2 {
        return Vec::new();
    }
    let subject =
        Subject::new("vm.zone_reclaim_mode", "Documentation/admin-guide/sysctl/vm.rst, zone_reclaim_mode");
    vec![match read(&case.settings().memory.zone_reclaim_mode, &subject) {
        Err(finding) => *finding,
        Ok(0) => subject.fine(0, "other nodes' memory is used before reclaim"),
        Ok(mode) => subject
            .harmful(mode, 0)
            .because("allocations wait for reclaim on their own node while other nodes have free memory")
            .command("sysctl -w vm.zone_reclaim_mode=0"),
    }]
}

/// NUMA balancing: the kernel unmaps pages to sample accesses.
pub(super) fn numa_balancing(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.node_count() < 2 || !case.is_fast() {
        return Vec::new();
    }
    let Some(found) = case.settings().memory.numa_balancing.value() else { return Vec::new() };
    let subject =
        Subject::new("kernel.numa_balancing", "Documentation/admin-guide/sysctl/kernel.rst, numa_balancing");
    vec![match found {
        0 => subject.fine(0, "pages are not migrated"),
        mode => subject
            .look(mode, 0)
            .because("the kernel unmaps pages to sample accesses, and the recorder faults on each")
            .command("sysctl -w kernel.numa_balancing=0"),
    }]
}

/// Whether the recorder's memory uses huge pages, as far as the settings are readable.
fn has_huge_pages(case: &Case<'_>) -> bool {
    let memory = &case.settings().memory;
    let free = memory.huge_pages_free.value().copied().unwrap_or(0);
    let page = memory.huge_page_bytes.value().copied().unwrap_or(0);
    let mode = memory.transparent_huge_pages.value();
    mode.is_some_and(|mode| mode != "never") || free.saturating_mul(page) >= pool_bytes(case)
}

/// Huge pages reduce the cost of writing blocks.
pub(super) fn huge_pages(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.needs.rate < FAST {
        return Vec::new();
    }
    let subject = Subject::new(
        "huge pages",
        "Documentation/admin-guide/mm/transhuge.rst and hugetlbpage.rst; measured in \
         docs/journal/0008-disk-beside-the-peers.md",
    );
    let judged = |subject: Subject| {
        let memory = &case.settings().memory;
        let mode = read(&memory.transparent_huge_pages, &subject)?;
        let free = memory.huge_pages_free.value().copied().unwrap_or(0);
        let page = memory.huge_page_bytes.value().copied().unwrap_or(0);
        let pool = pool_bytes(case);
        let value = format!("transparent {mode}, {free} reserved");
        if has_huge_pages(case) {
            return Ok(subject.fine(value, "the recorder's memory uses huge pages"));
        }
        let finding = subject.look(value, "transparent madvise, or enough reserved").because(
            "the recorder's memory uses 4 KiB pages, and the kernel looks up each page for every write; huge \
             pages reduce the CPU cost of direct writes to a fraction",
        );
        Ok(match page {
            0 => finding.command("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"),
            page => finding.command(format!(
                "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled   # or: sysctl -w \
                 vm.nr_hugepages={}",
                pool.div_ceil(page)
            )),
        })
    };
    vec![either(judged(subject))]
}

/// Buffers registered with io_uring count as locked memory. Only plain pages are registered.
pub(super) fn locked(case: &Case<'_>) -> Vec<DoctorFinding> {
    let process = &case.settings().process;
    if case.needs.rate < FAST || process.may_lock.value() == Some(&true) || has_huge_pages(case) {
        return Vec::new();
    }
    let subject =
        Subject::new("locked memory", "io_uring_register(2), IORING_REGISTER_BUFFERS; getrlimit(2)");
    let judged = |subject: Subject| {
        let limits = read(&process.locked_bytes, &subject)?;
        let pool = pool_bytes(case);
        match limits.soft {
            Limit::Unlimited => Ok(subject.fine("unlimited", "the recorder may register its memory")),
            Limit::At(bytes) if bytes >= pool => {
                Ok(subject.fine(size(bytes), "the recorder may register its memory"))
            }
            Limit::At(bytes) => Ok(subject
                .look(size(bytes), format!("{} or more", size(pool)))
                .because(
                    "the recorder cannot register its memory with io_uring, so the kernel looks up its pages \
                     for every write; for a systemd service set LimitMEMLOCK=infinity",
                )
                .command(format!("ulimit -l {}", pool.div_ceil(1024)))),
        }
    };
    vec![either(judged(subject))]
}

/// Every connection needs a file descriptor.
pub(super) fn descriptors(case: &Case<'_>) -> Vec<DoctorFinding> {
    let subject = Subject::new("open files", "getrlimit(2), RLIMIT_NOFILE");
    let judged = |subject: Subject| {
        // The recorder raises its soft limit to the hard limit.
        let wanted = DESCRIPTORS + u64::from(case.needs.connections);
        match read(&case.settings().process.descriptors, &subject)?.hard {
            Limit::Unlimited => Ok(subject.fine("unlimited", "enough for all connections")),
            Limit::At(found) if found >= wanted => Ok(subject.fine(found, "enough for all connections")),
            Limit::At(found) => Ok(subject
                .harmful(found, format!("{wanted} or more"))
                .because(format!(
                    "the limit is too low for {} connections and the files of the recording; for a systemd \
                     service set LimitNOFILE={wanted}",
                    case.needs.connections
                ))
                .command(format!("ulimit -Hn {wanted}"))),
        }
    };
    vec![either(judged(subject))]
}

/// Without io_uring one block is in flight at a time.
pub(super) fn io_uring(case: &Case<'_>) -> Vec<DoctorFinding> {
    let process = &case.settings().process;
    // Kernels without this switch have it enabled.
    let Some(found) = process.io_uring_disabled.value() else { return Vec::new() };
    let subject = Subject::new(
        "kernel.io_uring_disabled",
        "Documentation/admin-guide/sysctl/kernel.rst, io_uring_disabled",
    );
    let allowed = *found == 0 || (*found == 1 && process.is_admin.value() == Some(&true));
    if allowed {
        return vec![subject.fine(found, "io_uring is available")];
    }
    let severity = if case.needs.rate >= FAST { Subject::harmful } else { Subject::look };
    vec![
        severity(subject, found, 0)
            .because("the recorder falls back to synchronous writes: one block per volume in flight")
            .command("sysctl -w kernel.io_uring_disabled=0"),
    ]
}

/// Accumulated dirty data is written back in bursts.
pub(super) fn write_back(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.needs.rate < FAST {
        return Vec::new();
    }
    let subject = Subject::new(
        "vm.dirty_background_ratio",
        "Documentation/admin-guide/sysctl/vm.rst, dirty_background_bytes and dirty_bytes",
    );
    let judged = |subject: Subject| {
        let memory = &case.settings().memory;
        let bytes = *read(&memory.dirty_background_bytes, &subject)?;
        let percent = *read(&memory.dirty_background_ratio_percent, &subject)?;
        let total = *read(&memory.total_bytes, &subject)?;
        let (value, from) = match bytes {
            0 => (format!("{percent} %"), total / 100 * percent),
            bytes => (size(bytes), bytes),
        };
        let threshold = Bytes(from).binary();
        if from <= WAVE_BYTES {
            return Ok(subject.fine(value, format!("write-back starts at {threshold} at the latest")));
        }
        Ok(subject
            .look(value, format!("at most {}", Bytes(WAVE_BYTES).binary()))
            .because(format!(
                "the recorder bypasses the page cache where possible, but dirty data of other programs is \
                 written back from {threshold} on, in a burst that delays its writes"
            ))
            .command("sysctl -w vm.dirty_background_bytes=1073741824 vm.dirty_bytes=4294967296"))
    };
    vec![either(judged(subject))]
}

/// Swapped memory is as slow as its disk.
pub(super) fn swap(case: &Case<'_>) -> Vec<DoctorFinding> {
    let memory = &case.settings().memory;
    let (Some(used), Some(swappiness)) = (memory.swap_used_bytes.value(), memory.swappiness.value()) else {
        return Vec::new();
    };
    let subject = Subject::new("vm.swappiness", "Documentation/admin-guide/sysctl/vm.rst, swappiness");
    if *used == 0 {
        return vec![subject.fine(swappiness, "nothing is swapped out")];
    }
    if *swappiness <= 10 {
        return vec![subject.fine(swappiness, format!("{} are swapped out", Bytes(*used)))];
    }
    vec![
        subject
            .look(swappiness, "10 or less")
            .because(format!("{} are swapped out; a swapped-out buffer stalls the stream", Bytes(*used)))
            .command("sysctl -w vm.swappiness=10"),
    ]
}
