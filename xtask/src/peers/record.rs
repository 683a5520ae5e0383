//! `cargo xtask peers record`: compares the recorder with its peers, fio at its fastest setting.

use std::time::Duration;

use anyhow::{Result, anyhow};

use super::campaign::Campaign;
use super::contestant::{Contestant, Figure};
use super::fio::{self, Fio};
use super::group::{Group, select};
use super::options::Options;
use super::render::Head;
use super::runner::Work;
use super::runner::{Turns, once};
use super::scratch::Scratch;
use super::{groups, iperf3, mbuffer};

/// Bytes per run for finding the fastest setting of fio.
const CALIBRATION_BYTES: u64 = 2 << 30;

/// Method.
const METHOD: &str = "\
- Rate: bytes received, over the time from the start of the sender process until everything is durable (or
  discarded, if nothing is written) and the receiver has ended. In short runs start and end matter. The time
  includes an fsync of the file of iperf3 and mbuffer. The iperf3 server drops data in flight when its client
  finishes; only received data counts. For fio it is the runtime of its job including the last fsync.
- Accepted: by the clock of the sender, which does not wait for the disk.
- CPU: of the receiving process from start to end (wait4), including io_uring workers, excluding kernel
  threads, which write back the page cache. Running: without CPU used before the sender started (for fio
  nothing is subtracted).
- The recorder checksums every byte and accounts for every event; the peers do neither.";

/// Runs the campaign with `bytes` per run.
pub(super) fn run((options, bytes): &(Options, u64)) -> Result<()> {
    let campaign = Campaign::prepare(options, &[&iperf3::TOOL, &mbuffer::TOOL, &fio::TOOL])?;
    campaign.scratch.check_free_space(*bytes)?;
    let selected = |fio| {
        let groups = groups::all(&campaign.program, fio, *bytes);
        select(groups, &options.only).map_err(|why| anyhow!(why))
    };
    let mut groups = selected(Fio::FIRST)?;
    if groups.iter().any(has_fio) && fio::TOOL.is_installed() {
        let (fio, note) = calibrate(*bytes, &campaign.scratch)?;
        groups = selected(fio)?;
        let with_fio = groups.iter_mut().filter(|group| has_fio(group));
        with_fio.for_each(|group| group.notes.push(note.clone()));
    }
    let head = Head {
        title: "The recorder compared with its peers",
        what: format!("{:.2} GB and {} each, over loopback", *bytes as f64 / 1e9, options.rounds_text()),
        method: METHOD,
    };
    campaign.run(groups, options, &head)
}

/// Whether fio takes part in a group.
fn has_fio(group: &Group) -> bool {
    group.contestants.iter().any(|contestant| contestant.tool() == Some(&fio::TOOL))
}

/// Fastest setting of fio in one short run each, with a note about all settings.
fn calibrate(bytes: u64, scratch: &Scratch) -> Result<(Fio, String)> {
    let work = Work { bytes: bytes.min(CALIBRATION_BYTES), time: Duration::ZERO };
    let mut best = (Fio::FIRST, 0.0);
    let mut rates = Vec::new();
    for fio in Fio::settings() {
        let runs = once(&fio as &dyn Contestant, Turns { rounds: 1, work }, scratch)?;
        let rate = runs.as_ref().ok().and_then(|runs| Figure::Rate.of(runs.first()?));
        let shown = rate.map_or("failed".to_owned(), |rate| format!("{rate:.0} MB/s"));
        eprintln!("fio, {}: {shown}", fio.setting());
        rates.push(format!("{} {shown}", fio.setting()));
        if rate.is_some_and(|rate| rate > best.1) {
            best = (fio, rate.unwrap_or_default());
        }
    }
    let gigabytes = work.bytes as f64 / 1e9;
    let note = format!(
        "fio uses {}, the fastest setting in one run of {gigabytes:.2} GB each: {}",
        best.0.setting(),
        rates.join(", ")
    );
    Ok((best.0, note))
}
