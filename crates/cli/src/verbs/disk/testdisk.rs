//! `keepup disk testdisk`: the ESRF camera group's program.
use keepup_workload::disk::testdisk::{LISTING, QUICK, Testdisk};

use super::run::{Common, Purpose, Test, measure};
use crate::exit::Exit;

/// Create and overwrite 1 file of 4 GiB, 512 of 8 MiB, 2048 of 8 KiB (ESRF testdisk)
///
/// Makes the same system calls as the program in the ESRF camera computer's report. Each series is timed from
/// one sync to the end of the next, so the rate is that of durable data. MB are 2^20 bytes, as in the
/// listing.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup disk testdisk --volume /data/a
  keepup disk testdisk --volume /data/a --volume /data/b --repeats 5 --direct")]
pub(crate) struct Args {
    /// Bypass the page cache (O_DIRECT), unlike the listing
    #[arg(long)]
    direct: bool,
    /// Short test with 1/64 of the data, not comparable
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
