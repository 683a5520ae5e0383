//! `cargo xtask peers replay`: compares the replay of traces with that of fio.

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
- Both programs read the same file, an fio log of version 3 with requests of 4 KiB at random offsets within
  512 MiB. keepup runs three passes, and the first does not count: requests and times of the others are
  summed, and the worse span error and lateness are used. fio runs one pass.
- Timed: requests at constant intervals for 5 s. Span error: relative error of the time from the first to the
  last request, for keepup from its result, for fio from the runtime of its job, which has a resolution of
  1 ms (0.02 %). It is the lateness of the last request minus that of the first. Lateness of keepup:
  submission time minus due time. fio does not report it.
- Full speed: fio with replay_no_stall. Null target: the null engine of fio, the null target of keepup. File:
  both with io_uring and O_DIRECT, fio with fixed buffers (it does not support registered files with a log);
  batch is fio with submission batches of 8 and completion batches of up to 64. The file is new in each run
  and filled with incompressible data, by keepup itself or by a preceding fio job.
- CPU per request: as reported by the program: of the process for keepup, of the thread of the job for fio.
- By dependency: four alternating readers, each request 25 us after the end of the previous one, null target.
  The span error is the time added by the handling of all completions. fio has no such mode.";

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
        Head { title: "The replay of traces compared with fio", what: options.rounds_text(), method: METHOD };
    campaign.run(groups.map_err(|why| anyhow!(why))?, options, &head)
}
