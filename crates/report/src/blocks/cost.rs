//! Cost of recording: CPU, cores, threads, space and wear.

use keepup_results::{CpuCost, ResultSummary, StorageCost, ThreadCpu};

use crate::format::{NOT_MEASURED, bytes, digits, height, or_not_measured, percent, seconds};
use crate::page::{Block, Fact, Item};

/// Most cores printed with a number. Of more, only bars are drawn.
const CORES_NAMED_MAX: usize = 8;
const THREADS_NAMED_MAX: usize = 3;

pub(crate) fn block(summary: &ResultSummary) -> Block {
    let cpu = &summary.cpu;
    let storage = &summary.storage;
    let engine = &summary.engine;
    let mut facts = vec![
        Fact::new("CPU per GB", cpu_per_gb(cpu)),
        Fact::new("cores busy", cores(&cpu.per_core_percent)),
        Fact::new("share of all cores", shares(cpu)),
        Fact::new("threads", threads(&cpu.recorder_threads)),
        Fact::new("written with", format!("{}, buffers: {}", engine.io, engine.buffers)),
        Fact::new(
            "space",
            format!("this test wrote {}; {}", bytes(storage.bytes_written), full_after(storage)),
        ),
        Fact::new(
            "wear",
            or_not_measured(storage.bytes_per_year, |b| {
                format!("{} per year of continuous recording at the required rate", bytes(b))
            }),
        ),
    ];
    facts.extend(storage.endurance.as_ref().map(|endurance| Fact::new("endurance", endurance.to_string())));
    facts.extend(storage.disks.iter().map(|disk| Fact::new("disk", disk.to_string())));
    Block::new("Cost", vec![Item::Facts(facts)])
}

/// When the volumes are full at the required rate.
fn full_after(storage: &StorageCost) -> String {
    match (storage.hours_of_storage_left_at_required, storage.run_bytes) {
        (Some(hours), _) => {
            format!("at the required rate the volumes are full after {}", seconds(hours * 3600.0))
        }
        (None, Some(_)) => "at the required rate the drain frees space as fast as it is used".to_owned(),
        (None, None) => format!("time until the volumes are full: {NOT_MEASURED}"),
    }
}

fn cpu_per_gb(cpu: &CpuCost) -> String {
    let of = |figure| or_not_measured(figure, |s| format!("{} s", digits(s)));
    let drain = cpu
        .drain_seconds_per_gb
        .map_or(String::new(), |_| format!("drain {}; ", of(cpu.drain_seconds_per_gb)));
    format!(
        "recorder {}; {drain}source {} (not needed with a real detector)",
        of(cpu.seconds_per_gb),
        of(cpu.source_seconds_per_gb)
    )
}

fn cores(per_core_percent: &[f64]) -> String {
    let busiest = (0..).zip(per_core_percent).max_by(|a: &(usize, _), b| a.1.total_cmp(b.1));
    let Some((core, most)) = busiest else { return NOT_MEASURED.to_owned() };
    if per_core_percent.len() <= CORES_NAMED_MAX {
        let named = (0..)
            .zip(per_core_percent)
            .map(|(core, busy): (usize, _)| format!("{core} {} {}", height(*busy), percent(*busy)));
        return named.collect::<Vec<_>>().join("   ");
    }
    let bars: String = per_core_percent.iter().map(|busy| height(*busy)).collect();
    format!("{bars}   busiest: core {core} with {}", percent(*most))
}

fn shares(cpu: &CpuCost) -> String {
    format!(
        "softirq {}, steal {}",
        or_not_measured(cpu.softirq_percent, percent),
        or_not_measured(cpu.steal_percent, percent)
    )
}

fn threads(threads: &[ThreadCpu]) -> String {
    if threads.is_empty() {
        return NOT_MEASURED.to_owned();
    }
    let mut busiest: Vec<&ThreadCpu> = threads.iter().collect();
    busiest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(a.name.cmp(&b.name)));
    let named = busiest.iter().take(THREADS_NAMED_MAX).map(|thread| {
        let waited = thread.run_delay_seconds.map(|s| format!(" (waited {})", seconds(s)));
        format!("{} {}{}", thread.name, seconds(thread.seconds), waited.unwrap_or_default())
    });
    let rest = match threads.len().saturating_sub(THREADS_NAMED_MAX) {
        0 => String::new(),
        rest => format!(", and {rest} more"),
    };
    format!("{}{rest}", named.collect::<Vec<_>>().join(", "))
}
