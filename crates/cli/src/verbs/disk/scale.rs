//! `keepup disk scale`: one volume, two, up to all of them at once.
use std::path::PathBuf;
use std::time::Duration;

use keepup_results::{DiskFinding, DiskPhase, DiskRun, DiskSummary};
use keepup_workload::disk::scale::{Scale, Step};
use keepup_workload::disk::{Kind, Point};

use super::columns::{Column, rows};
use super::mode::{ModeArgs, SpaceArg, depth, described, request};
use super::run::{Common, Purpose, Test, measure, places};
use crate::args::{size, some_time, span};
use crate::exit::Exit;
use crate::verbs::record::usage;

/// Write to 1 volume, then to 2, up to all of them at once: what each more gives, and costs in CPU
///
/// As the acoustic camera's case study did with Iometer: sequential writes of 2 MB, a minute each after ten
/// seconds of ramp-up. With --group twice: each group alone, then all at once, as for two disk controllers.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk scale --volume /data/a --volume /data/b --volume /data/c
  keepup disk scale --group /data/a,/data/b --group /data/c,/data/d --ramp '2 s' --run '20 s'")]
pub(crate) struct Args {
    /// Volumes behind one controller, instead of --volume; given at least twice
    #[arg(long, value_name = "DIR,DIR…", conflicts_with = "volume")]
    group: Vec<String>,
    /// Read instead of write
    #[arg(long)]
    read: bool,
    /// Size of a request
    #[arg(long, default_value = "2 MiB", value_parser = request, value_name = "SIZE")]
    request: usize,
    /// Requests under way on each volume
    #[arg(long, default_value = "4", value_name = "K", value_parser = depth)]
    outstanding: usize,
    /// Size of the file on each volume; it is written over and over
    #[arg(long, default_value = "4 GiB", value_parser = size, value_name = "SIZE")]
    file: u64,
    /// Before it counts
    #[arg(long, default_value = "10 s", value_parser = span, value_name = "TIME")]
    ramp: Duration,
    /// How long each number of volumes is measured
    #[arg(long, default_value = "60 s", value_parser = some_time, value_name = "TIME")]
    run: Duration,
    /// What lies where a writer writes
    #[arg(long, value_enum, default_value = "overwritten")]
    space: SpaceArg,
    #[command(flatten)]
    mode: ModeArgs,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args, purpose: Purpose) -> anyhow::Result<Exit> {
    let groups: Vec<Vec<PathBuf>> =
        args.group.iter().map(|group| group.split(',').map(PathBuf::from).collect()).collect();
    if groups.len() == 1 {
        return Err(usage("one group has none to be compared with\nhint: give --group twice".to_owned()));
    }
    let mut common = args.common.clone();
    let steps = match groups.is_empty() {
        true => Step::up_to(common.volumes()?.len()),
        false => {
            common.set_volumes(groups.concat());
            Step::groups(&groups.iter().map(Vec::len).collect::<Vec<_>>())
        }
    };
    let mode = args.mode.mode(args.space.space())?;
    let file_bytes = args.file.max(1).next_multiple_of(args.request as u64);
    let kind = if args.read { Kind::Read } else { Kind::Write };
    let names: Vec<String> = steps.iter().map(|step| step.name.clone()).collect();
    let test = Test {
        test: Scale {
            steps,
            kind,
            point: Point { bytes: args.request, depth: args.outstanding },
            file_bytes,
            ramp: args.ramp,
            run: args.run,
            mode,
        },
        together: true,
        plan: serde_json::json!({
            "kind": kind.verb(), "request_bytes": args.request, "outstanding": args.outstanding,
            "file_bytes": file_bytes, "ramp_seconds": args.ramp.as_secs_f64(),
            "run_seconds": args.run.as_secs_f64(), "groups": args.group, "mode": described(&mode),
        }),
        lines: &conclusion,
        summary: &|summary| table(summary, &names),
    };
    measure(&common, purpose, &test)
}

/// What one run concludes.
fn conclusion(run: &DiskRun) -> Vec<String> {
    let Some(DiskFinding::Scale(found)) = &run.finding else { return Vec::new() };
    let plural = if found.knee_volumes == 1 { "" } else { "s" };
    let knee = match found.knee_is_beyond {
        true => {
            format!("the knee lies beyond {} volume{plural}: the last one still paid", found.knee_volumes)
        }
        false => format!(
            "knee at {} volume{plural}: the next adds less than half of what the first one gave",
            found.knee_volumes
        ),
    };
    let cost = found.cpu_per_volume.map(|cpu| format!("each volume costs {:.1} % of a core", cpu * 100.0));
    std::iter::once(knee).chain(cost).map(|line| format!("  {line}")).collect()
}

/// Medians over all repeats.
fn table(summary: &DiskSummary, steps: &[String]) -> String {
    let cpu = |phase: &DiskPhase| phase.cpu_seconds / phase.seconds * 100.0;
    let spread = |phase: &DiskPhase| {
        let rates = phase.parts.iter().filter_map(|part| part.bytes_per_second());
        let (least, most) = rates.fold((f64::MAX, 0.0f64), |(l, m), rate| (l.min(rate), m.max(rate)));
        (most > 0.0).then(|| least / most)
    };
    let columns: [Column<'_>; 7] = [
        ("MB/s", &|phase| phase.bytes_per_second().map(|rate| rate / 1e6), 1),
        ("CPU %", &|phase| Some(cpu(phase)), 1),
        ("machine %", &|phase| phase.machine_cpu_seconds.map(|s| s / phase.seconds * 100.0), 1),
        ("CPU s/GB", &DiskPhase::cpu_seconds_per_gb, 3),
        ("I/O per CPU s", &|phase| phase.operations.map(|n| n as f64 / phase.cpu_seconds), 0),
        ("p99 ms", &|phase| phase.latency.map(|latency| latency.p99_ns as f64 / 1e6), 2),
        ("evenness", &spread, 2),
    ];
    let mut lines = Vec::new();
    for place in places(summary) {
        lines.push(place.clone());
        let names: Vec<_> = steps.iter().map(|step| (step.clone(), step.clone())).collect();
        lines.extend(rows(summary, &place, &names, &columns));
    }
    lines.push(
        "MB = 10^6 bytes; per cent of one core, of keepup with its kernel workers, and of the whole machine; \
         evenness: slowest over fastest volume"
            .into(),
    );
    lines.join("\n")
}
