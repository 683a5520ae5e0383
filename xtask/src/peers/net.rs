//! `cargo xtask peers net`: compares the network tests with similar programs.

mod ends;
mod groups;
mod programs;
mod wire;

use std::path::Path;

use anyhow::{Result, anyhow};

use self::wire::Wire;
use super::campaign::Campaign;
use super::group::select;
use super::iperf3;
use super::options::Options;
use super::render::Head;

/// Method.
const METHOD: &str = "\
- Both ends run on this machine, over loopback or a pair of virtual interfaces between two namespaces, and
  share its cores. Rate: payload bytes received, over the duration of the test.
- CPU: of the processes of both ends from start to end (wait4), without interrupts and kernel threads.
- Without loss: the rate is doubled from 4 MB/s until a run loses data or misses its rate by more than 3 %,
  then the interval is halved four times, in the same way for both programs. iperf3 has a buffer of 4 MiB
  (-w 4M), the most that the usual kernel limits allow; keepup requests 16 MiB, which root gets.
- Trains are datagrams sent and received as one (segmentation offload), which neither loopback nor a virtual
  cable splits. Batches are single datagrams, many per call.";

/// Checks the names in `--only`.
pub(super) fn check(options: Options) -> Result<Options, String> {
    select(groups::all(Path::new("keepup"), &Err(String::new())), &options.only)?;
    Ok(options)
}

/// Runs the campaign.
pub(super) fn run(options: &Options) -> Result<()> {
    let campaign = Campaign::prepare(options, &[&iperf3::TOOL, &programs::NUTTCP])?;
    let cable = Wire::cable().map_err(|why| why.to_string());
    let groups = groups::all(&campaign.program, &cable);
    let groups = select(groups, &options.only).map_err(|why| anyhow!(why))?;
    let head = Head {
        title: "The network tests compared with their peers",
        what: format!("{}; both ends on one machine", options.rounds_text()),
        method: METHOD,
    };
    campaign.run(groups, options, &head)
}
