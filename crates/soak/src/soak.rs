//! The soak: its turns on volumes, as a `Workload`.
//!
//! Invariants: the work of a turn counts even if its rest failed; all files are below a scratch directory
//! except damaged ones.
use std::path::{Path, PathBuf};
use std::time::Duration;

use keepup_measure::stats::poisson_interval;
use keepup_results::{SoakInterval, SoakRate};
use keepup_sys::file::{Access, open_to_read};
use keepup_workload::scratch::Scratch;
use keepup_workload::{Context, Footprint, Workload};

use crate::copy::{Target, copy_once};
use crate::error::SoakError;
use crate::plan::{Limits, ReferencePlan};
use crate::reference::Reference;
use crate::stamp::{PAGE_BYTES, mix};
use crate::stamped::{Stamped, stamp_once};
use crate::state::{Account, Record, SoakState};
use crate::turn::{Blocks, Turn};

const COPY: &str = "copy";
const STAMPED: &str = "stamped";

/// A soak test: its turns, limits and account.
pub struct Soak {
    state: SoakState,
    limits: Limits,
    places: Vec<VolumeFiles>,
    blocks: Option<Blocks>,
    notes: Vec<String>,
}

/// Files and properties of one volume.
struct VolumeFiles {
    volume: PathBuf,
    copy: PathBuf,
    references: Vec<Reference>,
    stamped: Option<Stamped>,
    is_direct: bool,
    _scratch: Scratch,
}

/// Result of a soak at the end of a session.
#[derive(Clone, Debug)]
pub struct SoakMeasured {
    /// Totals and findings of all sessions.
    pub account: Account,
    /// Notes on how it was measured.
    pub notes: Vec<String>,
}

impl Soak {
    /// Continues from `state` until `limits` are reached or the user stops it.
    pub fn new(state: SoakState, limits: Limits) -> Self {
        Self { state, limits, places: Vec::new(), blocks: None, notes: Vec::new() }
    }

    fn is_at_end(&self) -> bool {
        let (Limits { rounds, time }, totals) = (self.limits, &self.state.account.totals);
        let volumes = self.state.account.start.plan.volumes.len() as u64;
        rounds.is_some_and(|rounds| totals.turns >= rounds.saturating_mul(volumes))
            || time.is_some_and(|time| Duration::from_nanos(totals.elapsed_ns) >= time)
    }

    /// Prepares the files on volume `number`.
    fn place(&self, number: usize, volume: &Path, blocks: &mut Blocks) -> Result<VolumeFiles, SoakError> {
        let begin = &self.state.account.start;
        let plan = &begin.plan;
        let names: Vec<String> = (0..plan.references.len()).map(|n| format!("reference-{n}")).collect();
        let left: Vec<&str> = names.iter().map(String::as_str).chain([COPY, STAMPED]).collect();
        let mut scratch = Scratch::renew(volume, &begin.name(), &left)?;
        let copy = scratch.file(COPY);
        let mut references = Vec::new();
        for (n, reference) in plan.references.iter().enumerate() {
            references.push(match reference {
                ReferencePlan::File { path } => Reference::take(path, plan.digest, &mut blocks.expected)?,
                ReferencePlan::Made { bytes } => {
                    let (path, seed) = (scratch.file(&names[n]), mix(begin.number(), n as u64));
                    Reference::make(path, *bytes, seed, plan.digest, &mut blocks.expected)?
                }
            });
        }
        let mut stamped = None;
        let path = scratch.file(STAMPED);
        if plan.stamped_bytes > 0 {
            let (bytes, run) = (plan.stamped_bytes.next_multiple_of(PAGE_BYTES as u64), begin.number());
            let volume = volume.to_owned();
            let mut file =
                Stamped { volume, path: path.clone(), bytes, run, number: number as u64, generation: 0 };
            file.make()?;
            stamped = Some(file);
        }
        let probe = if stamped.is_some() { Some(path) } else { references.first().map(|r| r.path.clone()) };
        let is_direct = probe.is_some_and(|file| open_to_read(&file, Access::Direct).is_ok());
        let volume = volume.to_owned();
        Ok(VolumeFiles { volume, copy, references, stamped, is_direct, _scratch: scratch })
    }

    /// Runs one turn; false if interrupted.
    fn turn(&mut self, context: &mut Context) -> Result<bool, SoakError> {
        let turns = self.state.account.totals.turns;
        let plan = self.state.account.start.plan.clone();
        let volumes = plan.volumes.len() as u64;
        let place = &mut self.places[(turns % volumes) as usize];
        let Some(blocks) = &mut self.blocks else { return Ok(false) };
        let mode = plan.turn_mode(turns / volumes, place.is_direct);
        let mut turn = Turn::begin(turns + 1, mode, &mut self.state, context);
        let outcome = match &mut place.stamped {
            Some(file) if mode.stamps => stamp_once(file, blocks, &mut turn),
            _ => {
                let target = Target { volume: &place.volume, copy: &place.copy, digest: plan.digest };
                place.references.iter().try_fold(true, |goes_on, reference| {
                    Ok(goes_on && copy_once(reference, &target, blocks, &mut turn)?)
                })
            }
        };
        // A turn's work counts even if the rest failed.
        let ended = turn.end(matches!(outcome, Ok(true)));
        let is_whole = outcome?;
        ended?;
        Ok(is_whole)
    }
}

impl Workload for Soak {
    type Measured = SoakMeasured;
    type Error = SoakError;

    fn name(&self) -> &'static str {
        "soak"
    }

    fn plan(&self) -> Footprint {
        self.state.account.start.plan.footprint(self.limits)
    }

    fn prepare(&mut self, context: &mut Context) -> Result<(), SoakError> {
        if self.is_at_end() {
            return Ok(());
        }
        let mut blocks = Blocks::new()?;
        let volumes = self.state.account.start.plan.volumes.clone();
        for (number, volume) in volumes.iter().enumerate() {
            let place = self.place(number, volume, &mut blocks)?;
            if !place.is_direct {
                self.notes.push(format!(
                    "{}: no direct I/O here; read back through the page cache, after asking the kernel to \
                     drop the file's pages",
                    volume.display()
                ));
            }
            let digests: Vec<String> = place.references.iter().map(|r| r.digest.clone()).collect();
            let known = &self.state.account.digests;
            if known.is_empty() && !digests.is_empty() {
                self.state.note(Record::Digests { digests })?;
            } else if let Some(n) = known.iter().zip(&digests).position(|(known, found)| known != found) {
                let (path, known) = (place.references[n].path.clone(), &known[n]);
                let what = format!("its digest is {}, but was {known} at the start of the soak", digests[n]);
                return Err(SoakError::Reference { path, what });
            }
            self.places.push(place);
        }
        self.blocks = Some(blocks);
        self.state.note(Record::Session { time_unix_ns: context.clock.unix_ns() })
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), SoakError> {
        while !self.is_at_end() && self.turn(context)? {}
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), SoakError> {
        self.places.clear();
        Ok(())
    }

    fn measured(&mut self) -> Result<SoakMeasured, SoakError> {
        Ok(SoakMeasured { account: self.state.account.clone(), notes: std::mem::take(&mut self.notes) })
    }
}

impl Account {
    /// Error rate with confidence intervals; none before anything was read back.
    pub fn rate(&self) -> Option<SoakRate> {
        let bytes = self.totals.read.bytes;
        let interval = |exposure: f64| {
            let found = poisson_interval(self.damage.mismatches, exposure)?;
            Some(SoakInterval { value: found.value, lower: found.lower, upper: found.upper })
        };
        Some(SoakRate {
            bytes,
            wrong_bytes_per_byte: self.damage.bytes as f64 / bytes as f64,
            mismatches_per_byte: interval(bytes as f64)?,
            mismatches_per_bit: interval(bytes as f64 * 8.0)?,
        })
    }
}

#[cfg(test)]
#[path = "soak_tests.rs"]
mod tests;
