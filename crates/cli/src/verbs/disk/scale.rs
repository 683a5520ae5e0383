//! `keepup disk scale`: scaling over volumes.
use std::path::PathBuf;
use std::time::Duration;

use keepup_error::Cause;
use keepup_workload::disk::scale::{Scale, Step};
use keepup_workload::disk::{IoDirection, Point};

use super::mode::{ModeArgs, SpaceArg, depth, described, request};
use super::run::{Common, Purpose, Test, measure};
use crate::args::{duration, nonzero_duration, size};
use crate::exit::{Exit, usage};

/// Write to 1, 2, up to all volumes at once: throughput and CPU cost of each step
///
/// The Iometer test of the acoustic camera's case study: sequential writes of 2 MB for a minute after a
/// warm-up of ten seconds. With two or more --group, each group alone and then all, to compare disk
/// controllers.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk scale --volume /data/a --volume /data/b --volume /data/c
  keepup disk scale --group /data/a,/data/b --group /data/c,/data/d --ramp '2 s' --time '20 s'")]
pub(crate) struct Args {
    /// Volumes of one controller, instead of --volume; give it twice or more
    #[arg(long, value_name = "DIR,DIR…", conflicts_with = "volume")]
    group: Vec<String>,
    /// Read instead of write
    #[arg(long)]
    read: bool,
    /// Request size
    #[arg(long, default_value = "2 MiB", value_parser = request, value_name = "SIZE")]
    request: usize,
    /// Queue depth per volume
    #[arg(long, default_value = "4", value_name = "K", value_parser = depth)]
    outstanding: usize,
    /// Size of the file per volume, overwritten in a loop
    #[arg(long, default_value = "4 GiB", value_parser = size, value_name = "SIZE")]
    file: u64,
    /// Warm-up time, not measured
    #[arg(long, default_value = "10 s", value_parser = duration, value_name = "TIME")]
    ramp: Duration,
    /// Measurement time per number of volumes
    #[arg(long, alias = "run", default_value = "60 s", value_parser = nonzero_duration, value_name = "TIME")]
    time: Duration,
    /// Space before writes
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
        let why = Cause::new("cannot compare groups: only one is given");
        return Err(usage(why.with_hint("use --group at least twice")));
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
    let kind = if args.read { IoDirection::Read } else { IoDirection::Write };
    let test = Test {
        test: Scale {
            steps,
            kind,
            point: Point { bytes: args.request, depth: args.outstanding },
            file_bytes,
            ramp: args.ramp,
            run: args.time,
            mode,
        },
        together: true,
        plan: serde_json::json!({
            "kind": kind.verb(), "request_bytes": args.request, "outstanding": args.outstanding,
            "file_bytes": file_bytes, "ramp_seconds": args.ramp.as_secs_f64(),
            "run_seconds": args.time.as_secs_f64(), "groups": args.group, "mode": described(&mode),
        }),
    };
    measure(&common, purpose, &test)
}
