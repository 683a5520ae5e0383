//! `keepup disk testdisk`: the camera group's program.
use keepup_workload::disk::testdisk::{LISTING, QUICK, Testdisk};

use super::run::{Common, Purpose, Test, measure};
use crate::exit::Exit;

/// Write 1 file of 4 GiB, 512 of 8 MiB, 2048 of 8 KiB; create them, then overwrite them
///
/// The program of the ESRF camera computer's report, call by call: each series is timed from one sync to the
/// end of the next, so what is printed is durable. Its MB are 2^20 bytes, as in the listing.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk testdisk --volume /data/a
  keepup disk testdisk --volume /data/a --volume /data/b --repeats 5 --direct")]
pub(crate) struct Args {
    /// Past the page cache, which the listing does not do
    #[arg(long)]
    direct: bool,
    /// A 64th of the bytes: for a first look, not for comparison
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args, purpose: Purpose) -> anyhow::Result<Exit> {
    let sequence = if args.quick { QUICK } else { LISTING };
    let direct = args.direct;
    let test = Test {
        test: Testdisk { sequence, direct },
        together: false,
        plan: serde_json::json!({
            "sequence": sequence.map(|s| serde_json::json!({"files": s.files, "bytes": s.bytes})),
            "direct": direct,
        }),
    };
    measure(&args.common, purpose, &test)
}
