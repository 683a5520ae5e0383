//! The campaign `cargo xtask peers replay`: keepup's replay of a trace beside fio's of the same file.

mod groups;
mod programs;
mod traces;

use std::path::Path;

use anyhow::{Result, anyhow};

use super::campaign::Campaign;
use super::group::select;
use super::options::Options;
use super::render::Head;

/// Method.
const METHOD: &str = "\
- Both programs read the same file, fio's log of version 3; requests of 4 KiB at places drawn at random from
  512 MiB. keepup makes three passes and the first is not counted: of the others, requests and times are
  summed, and of span error and lateness the worse is taken. fio makes one pass.
- Timed: requests at a constant distance for 5 s. Span error: how much longer or shorter it took from the
  first request to the last than the trace says; of keepup by its own result, of fio by the run time of its
  job, which has 1 ms (0.02 %). A span that is right is also one in which lateness did not grow: its error
  is the last request's lateness less the first's. keepup's lateness: how much later than its time a request
  was made. fio tells none.
- As fast as possible: fio with replay_no_stall. Nowhere: fio's null engine, keepup's null target. On a
  file: both by io_uring past the page cache, fio with fixed buffers (registered files it refuses beside a
  log); batch is fio told to submit 8 at once and to take up to 64 that have ended. Either program's file
  is new in each run and filled with data that does not compress: keepup's by itself, fio's by a job before.
- CPU per request: as the program counts it; keepup its process, fio the thread of its job.
- By dependency: four readers by turns, each request 25 us after the one before it has ended; nowhere. The
  span error is what all ends, seen and answered, add to the sum of these pauses. fio has no such mode.";

/// Checks the names in `--only`.
pub(super) fn check(options: Options) -> Result<Options, String> {
    select(groups::all(Path::new("keepup"), Path::new(".")), &options.only)?;
    Ok(options)
}

/// Runs the campaign.
pub(super) fn run(options: &Options) -> Result<()> {
    let campaign = Campaign::prepare(options, &[&super::fio::TOOL])?;
    let traces = campaign.scratch.within("traces")?;
    traces::write_all(traces.path())?;
    let groups = select(groups::all(&campaign.program, traces.path()), &options.only);
    let head =
        Head { title: "The replay of traces beside fio's", what: options.rounds_text(), method: METHOD };
    campaign.run(groups.map_err(|why| anyhow!(why))?, options, &head)
}
