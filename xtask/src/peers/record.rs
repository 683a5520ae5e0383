//! The campaign `cargo xtask peers record`: sets fio to its best and lets the recorder run beside its peers.

use std::time::Duration;

use anyhow::{Result, anyhow};

use super::campaign::Campaign;
use super::contestant::{Contestant, Figure};
use super::fio::{self, Fio};
use super::group::{Group, Work, select};
use super::options::Options;
use super::render::Head;
use super::runner::{Turns, once};
use super::scratch::Scratch;
use super::{groups, iperf3, mbuffer};

/// Bytes of each run by which fio's best setting is found.
const CALIBRATION_BYTES: u64 = 2 << 30;

/// How the figures came about; what a reader must know to judge them.
const METHOD: &str = "\
- Rate: bytes that arrived, over the time from the start of the sender's process until everything is durable
  (or dropped, where nothing is written) and the receiver has ended; in short runs starting and ending weigh.
  An fsync of the file of iperf3 and mbuffer is within that time. iperf3's server drops what is still on its
  way when its client says that it is done; only what arrived counts. For fio it is the runtime of its job,
  the last fsync included, and nothing else.
- Accepted: by the sender's own clock; it does not wait for the disk, and buffers make it look fast.
- CPU: of the receiving process from start to end, by the kernel's account (wait4), io_uring's workers
  included; not of the kernel's own threads, which write the page cache out for those who use it. Running:
  without what was used before the sender started (nothing is taken off for fio).
- The recorder checksums every byte and keeps an account of every event; the peers do neither.";

/// Runs the campaign with so many bytes a run.
pub(super) fn run((options, bytes): &(Options, u64)) -> Result<()> {
    let campaign = Campaign::prepare(options, &[&iperf3::TOOL, &mbuffer::TOOL, &fio::TOOL])?;
    campaign.scratch.check_room(*bytes)?;
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
        title: "The recorder beside its peers",
        what: format!("{:.2} GB and {} each, over the loopback", *bytes as f64 / 1e9, options.rounds_told()),
        method: METHOD,
    };
    campaign.run(groups, options, &head)
}

/// Whether fio takes part in a group.
fn has_fio(group: &Group) -> bool {
    group.contestants.iter().any(|contestant| contestant.tool() == Some(&fio::TOOL))
}

/// The setting at which fio was fastest in one short run of each, and what all of them gave.
fn calibrate(bytes: u64, scratch: &Scratch) -> Result<(Fio, String)> {
    let work = Work { bytes: bytes.min(CALIBRATION_BYTES), time: Duration::ZERO };
    let mut best = (Fio::FIRST, 0.0);
    let mut told = Vec::new();
    for fio in Fio::settings() {
        let runs = once(&fio as &dyn Contestant, Turns { rounds: 1, work }, scratch)?;
        let rate = runs.as_ref().ok().and_then(|runs| Figure::Rate.of(runs.first()?));
        let shown = rate.map_or("failed".to_owned(), |rate| format!("{rate:.0} MB/s"));
        eprintln!("fio, {}: {shown}", fio.setting());
        told.push(format!("{} {shown}", fio.setting()));
        if rate.is_some_and(|rate| rate > best.1) {
            best = (fio, rate.unwrap_or_default());
        }
    }
    let gigabytes = work.bytes as f64 / 1e9;
    let note = format!(
        "fio is set to {}, the fastest of one run of {gigabytes:.2} GB each: {}",
        best.0.setting(),
        told.join(", ")
    );
    Ok((best.0, note))
}
