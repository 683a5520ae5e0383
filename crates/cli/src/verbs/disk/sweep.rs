//! `keepup disk sweep`: request sizes against queue depths.
use std::time::Duration;

use keepup_workload::disk::Point;
use keepup_workload::disk::mode::Space;
use keepup_workload::disk::sweep::Sweep;

use super::mode::{ModeArgs, depth, described};
use super::run::{Common, Purpose, Test, measure};
use crate::args::{nonzero_duration, size};
use crate::exit::{Exit, usage};

/// Measure writes and reads over request sizes and queue depths
///
/// Request sizes are 512 B to 64 MiB, queue depths 1 to 256. The test uses one file, which is written
/// completely before. Each point takes --time; the measured time of a write includes the final flush.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk sweep --volume /data/a --quick
  keepup disk sweep --volume /data/a --sizes '64 KiB,1 MiB' --depths 1,8,32 --time 10s --repeats 5")]
pub(crate) struct Args {
    /// Request sizes [default: 512 B to 64 MiB, doubling]
    #[arg(long, value_parser = size, value_name = "SIZES", value_delimiter = ',')]
    sizes: Vec<u64>,
    /// Queue depths [default: 1 to 256, doubling]
    #[arg(long, value_name = "DEPTHS", value_delimiter = ',', value_parser = depth)]
    depths: Vec<usize>,
    /// Measurement time per point [default: 1 s]
    #[arg(long, value_parser = nonzero_duration, value_name = "TIME")]
    time: Option<Duration>,
    /// Size of the file [default: 4 GiB]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    file: Option<u64>,
    #[command(flatten)]
    mode: ModeArgs,
    /// Short test: 4 KiB to 4 MiB, depths 1, 8, 32, 0.2 s per point, 1 GiB
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args, purpose: Purpose) -> anyhow::Result<Exit> {
    let doubling = |first: u64, last: u64| {
        std::iter::successors(Some(first), move |n| Some(n * 2).filter(|n| *n <= last))
    };
    let given = |given: &[u64], quick: &[u64], all: Vec<u64>| match (given, args.quick) {
        ([], true) => quick.to_vec(),
        ([], false) => all,
        (given, _) => given.to_vec(),
    };
    let sizes = given(&args.sizes, &[4 << 10, 64 << 10, 1 << 20, 4 << 20], doubling(512, 64 << 20).collect());
    let depths: Vec<u64> = args.depths.iter().map(|depth| *depth as u64).collect();
    let depths = given(&depths, &[1, 8, 32], doubling(1, 256).collect());
    if let Some(wrong) = sizes.iter().find(|size| !(512..=64 << 20).contains(*size) || **size % 512 != 0) {
        return Err(usage(format!(
            "cannot use --sizes {wrong} B: it must be a multiple of 512 B up to 64 MiB"
        )));
    }
    let (quick_time, quick_file) = (Duration::from_millis(200), 1 << 30);
    let time = args.time.unwrap_or(if args.quick { quick_time } else { Duration::from_secs(1) });
    let file_bytes = args.file.unwrap_or(if args.quick { quick_file } else { 4 << 30 });
    let file_bytes = file_bytes.next_multiple_of(64 << 20);
    let points: Vec<Point> = sizes
        .iter()
        .flat_map(|&bytes| {
            depths.iter().map(move |&depth| Point { bytes: bytes as usize, depth: depth as usize })
        })
        .collect();
    let mode = args.mode.mode(Space::Overwritten)?;
    let test = Test {
        test: Sweep { points, file_bytes, time, mode },
        together: false,
        plan: serde_json::json!({
            "sizes": sizes, "depths": depths, "seconds": time.as_secs_f64(), "file_bytes": file_bytes,
            "mode": described(&mode),
        }),
    };
    measure(&args.common, purpose, &test)
}
