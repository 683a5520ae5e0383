//! The campaign `cargo xtask peers net`: keepup's network tests beside the programs that they are like.

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

/// How the figures came about; what a reader must know to judge them.
const METHOD: &str = "\
- Both ends run on this machine, over loopback or a pair of virtual interfaces between two namespaces, and
  share its cores. Rate: bytes of payload that the receiver took, over the time of the test.
- CPU: of both ends' processes from start to end, by the kernel's account (wait4); what interrupts and
  kernel threads did is not in it.
- Without loss: the rate is doubled from 4 MB/s until a run of 2 s loses something or is not kept within
  3 %, then the gap is halved four times; both programs are searched the same way. iperf3 has a buffer of
  4 MiB (-w 4M), the most that the kernel's usual limits allow it; keepup asks for 16 MiB, which root gets.
- Trains are datagrams that are sent and received as one, which neither loopback nor a virtual cable cuts:
  what the kernel's path can do. Batches are single datagrams, many with each call.";

/// What the campaign was told, when every name in it is known; otherwise says which is not.
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
        title: "The network tests beside their peers",
        what: format!("{}; both ends on one machine", options.rounds_told()),
        method: METHOD,
    };
    campaign.run(groups, options, &head)
}
