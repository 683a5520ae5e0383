//! The account of a soak, and the file that keeps it: one checked line for each thing that happened.
//!
//! A line is a JSON object with its CRC-32, as in a recording's journal. Invariants: the account changes only
//! by what was entered as a line, so a soak that is gone on with has the account that it had; each line is
//! durable before the next; a file that is damaged, or is of another plan, is refused and not touched. A line
//! without its end, which a crash leaves, is cut off and told.
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use keepup_measure::errors::ErrorCounter;
use keepup_measure::space::Space;
use keepup_recording::id::Id;
use keepup_recording::line::{LINE_BYTES_MAX, parse_line, put_line};
use keepup_results::{SoakDamage, SoakMismatch, SoakTotals};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::plan::SoakPlan;
use crate::WorkloadError;
use crate::ceiling::system;

/// Version of the lines.
const VERSION: u32 = 1;
/// Mismatches that a result lists; the others are counted.
const LISTED_MAX: usize = 100;
/// Damaged files that are kept for the user.
const KEPT_MAX: usize = 3;

/// How a soak began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beginning {
    /// Version of the lines that follow.
    version: u32,
    /// Its identity.
    pub id: Id,
    /// When, ns since the Unix epoch.
    pub time_unix_ns: u64,
    /// What every turn does.
    pub plan: SoakPlan,
    /// Counters of errors before the first turn.
    pub counters: Vec<ErrorCounter>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Record {
    /// Always the first line.
    Begin(Beginning),
    /// It was begun, or gone on with.
    Sitting {
        /// When, ns since the Unix epoch.
        time_unix_ns: u64,
    },
    /// Digests of the references, in the order of the plan.
    Digests {
        /// Hexadecimal.
        digests: Vec<String>,
    },
    /// What a turn did, or the part of one that was cut short.
    Turn {
        /// That and no more.
        totals: SoakTotals,
    },
    /// A file that was not as written.
    Mismatch(SoakMismatch),
}

/// What is known of a soak, over all its sittings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// How it began.
    pub beginning: Beginning,
    /// Times that it was begun or gone on with.
    pub sittings: u64,
    /// Digests of the references, in the order of the plan.
    pub digests: Vec<String>,
    /// What was done.
    pub totals: SoakTotals,
    /// What was wrong.
    pub damage: SoakDamage,
    /// Mismatches, the first ones.
    pub mismatches: Vec<SoakMismatch>,
    kept: usize,
}

/// The account, and where it is written down.
#[derive(Debug)]
pub struct Desk {
    /// What is known so far.
    pub account: Account,
    /// What a crash left of the last line, in bytes: cut off, its turn is done again.
    pub torn_bytes: u64,
    state: Option<StateFile>,
}

#[derive(Debug)]
struct StateFile {
    file: File,
    path: PathBuf,
    line: Vec<u8>,
    /// Length of all whole lines, bytes.
    bytes: u64,
    is_broken: bool,
}

impl Beginning {
    /// A soak that begins now.
    pub fn new(id: Id, time_unix_ns: u64, plan: SoakPlan, counters: Vec<ErrorCounter>) -> Self {
        Self { version: VERSION, id, time_unix_ns, plan, counters }
    }

    /// What distinguishes this soak's stamps and its names.
    pub fn number(&self) -> u64 {
        u64::from_str_radix(&self.id.to_string()[..16], 16).unwrap_or_default()
    }

    /// Begin of the names of everything that it makes on a volume.
    pub fn name(&self) -> String {
        format!("keepup-soak-{}", &self.id.to_string()[..8])
    }
}

impl Account {
    fn new(beginning: Beginning) -> Self {
        Self {
            beginning,
            sittings: 0,
            digests: Vec::new(),
            totals: SoakTotals::default(),
            damage: SoakDamage::default(),
            mismatches: Vec::new(),
            kept: 0,
        }
    }

    fn enter(&mut self, record: Record) {
        match record {
            // Only the first line, which made the account.
            Record::Begin(_) => {}
            Record::Sitting { .. } => self.sittings += 1,
            Record::Digests { digests } => self.digests = digests,
            Record::Turn { totals } => self.totals.add(&totals),
            Record::Mismatch(mismatch) => {
                self.damage.add(&mismatch);
                self.kept += usize::from(mismatch.kept.is_some());
                if self.mismatches.len() < LISTED_MAX {
                    self.mismatches.push(mismatch);
                }
            }
        }
    }
}

impl Desk {
    /// A soak that is written down nowhere.
    pub fn without_state(beginning: Beginning) -> Self {
        Self { account: Account::new(beginning), torn_bytes: 0, state: None }
    }

    /// Goes on with the soak in the file `path`, or begins one there as `beginning` says.
    ///
    /// # Errors
    /// When somebody else goes on with it, it is damaged, or of another plan; the file is left alone then.
    pub fn open(path: &Path, beginning: Beginning) -> Result<Self, WorkloadError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o644);
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = options.custom_flags(flags.bits() as i32).open(path).map_err(|e| not_opened(path, e))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(WorkloadError::StateBusy { path: path.into() }),
            // A file system without locks is no reason not to soak.
            Err(Errno::NOTSUP | Errno::NOSYS | Errno::NOLCK) | Ok(()) => {}
            Err(e) => return Err(not_opened(path, e.into())),
        }
        let read = read_state(&file, path)?;
        let mut state = StateFile { file, path: path.into(), line: Vec::new(), bytes: 0, is_broken: false };
        let Some((account, whole_bytes, torn_bytes)) = read else {
            // Empty, or a first line that was never finished.
            state.cut(0)?;
            state.append(&Record::Begin(beginning.clone()))?;
            sync_name(path)?;
            return Ok(Self { account: Account::new(beginning), torn_bytes: 0, state: Some(state) });
        };
        if let Some(what) = difference(&account.beginning.plan, &beginning.plan) {
            return Err(WorkloadError::StatePlan { path: path.into(), what });
        }
        state.cut(whole_bytes)?;
        Ok(Self { account, torn_bytes, state: Some(state) })
    }

    /// Writes a line, durable, and enters it into the account.
    pub(super) fn note(&mut self, record: Record) -> Result<(), WorkloadError> {
        let written = self.state.as_mut().map_or(Ok(()), |state| state.append(&record));
        // The result tells of it even when the file takes no more.
        self.account.enter(record);
        written
    }

    /// Where the next damaged file is kept, unless there are enough, or no room is left to go on.
    pub(super) fn place_for_damaged(&self, volume: &Path) -> Option<PathBuf> {
        let plan = &self.account.beginning.plan;
        let needed = plan.stamped_bytes.max(self.largest_copy());
        let has_room = Space::of(volume).is_ok_and(|space| space.free_bytes > 2 * needed);
        let name = format!("{}-damaged-{}", self.account.beginning.name(), self.account.kept + 1);
        let place = volume.join(name);
        (self.account.kept < KEPT_MAX && has_room && !place.exists()).then_some(place)
    }

    fn largest_copy(&self) -> u64 {
        let sizes = self.account.beginning.plan.references.iter().map(super::plan::ReferencePlan::bytes);
        sizes.max().unwrap_or(0)
    }
}

impl StateFile {
    fn append(&mut self, record: &Record) -> Result<(), WorkloadError> {
        let action = format!("append to the state {}", self.path.display());
        let failed = system(&action);
        if self.is_broken {
            return Err(failed(std::io::Error::other("an earlier write to it failed")));
        }
        put_line(&mut self.line, record).map_err(std::io::Error::other).map_err(&failed)?;
        let written = self.file.write_all_at(&self.line, self.bytes).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A part of the line may be there; behind it no other line may ever stand.
            self.is_broken = true;
            let _ = self.file.set_len(self.bytes);
            return Err(failed(error));
        }
        self.bytes += self.line.len() as u64;
        Ok(())
    }

    /// Cuts off what stands behind `bytes`, and goes on there.
    fn cut(&mut self, bytes: u64) -> Result<(), WorkloadError> {
        self.bytes = bytes;
        let action = format!("cut off the torn line of the state {}", self.path.display());
        self.file.set_len(bytes).map_err(system(&action))
    }
}

/// Why the state could not be opened, and what helps.
fn not_opened(path: &Path, source: std::io::Error) -> WorkloadError {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists());
    let hint = match parent {
        Some(missing) => format!("mkdir -p {}", missing.display()),
        None if path.is_symlink() => "name the file itself: a symbolic link may lead anywhere".into(),
        None => "another place: --state FILE".into(),
    };
    WorkloadError::StateFile { path: path.into(), source, hint }
}

/// The account in a state file, the length of its whole lines and of what stands behind them, in bytes;
/// nothing when it has no whole line.
fn read_state(file: &File, path: &Path) -> Result<Option<(Account, u64, u64)>, WorkloadError> {
    let mut reader = BufReader::new(file);
    let (mut account, mut offset, mut number) = (None::<Account>, 0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        number += 1;
        let damaged = |what: String| WorkloadError::State { path: path.into(), line: number, offset, what };
        let read = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        let read = read.map_err(system(&format!("read the state {}", path.display())))? as u64;
        let Some((b'\n', content)) = line.split_last() else {
            if read > LINE_BYTES_MAX as u64 {
                return Err(damaged(format!("it is longer than {LINE_BYTES_MAX} bytes")));
            }
            // Nothing of ours begins otherwise: another file must not be cut.
            if account.is_none() && read > 0 && !r#"{"t":"begin","#.as_bytes().starts_with(first(&line)) {
                return Err(damaged("it is not the begin of a soak".into()));
            }
            return Ok(account.map(|account| (account, offset, read)));
        };
        let record = parse_line::<Record>(content).map_err(damaged)?;
        match (&mut account, record) {
            (None, Record::Begin(begin)) if begin.version == VERSION => account = Some(Account::new(begin)),
            (None, Record::Begin(begin)) => {
                return Err(damaged(format!("its version is {}, not {VERSION}", begin.version)));
            }
            (None, _) => return Err(damaged("it is not the begin of a soak".into())),
            (Some(_), Record::Begin(_)) => return Err(damaged("a second soak begins there".into())),
            (Some(account), record) => account.enter(record),
        }
        offset += read;
    }
}

/// As many bytes of an unfinished first line as its begin has.
fn first(line: &[u8]) -> &[u8] {
    &line[..line.len().min(r#"{"t":"begin","#.len())]
}

/// The first setting in which two plans differ.
fn difference(known: &SoakPlan, asked: &SoakPlan) -> Option<String> {
    let value = |plan: &SoakPlan| serde_json::to_value(plan).unwrap_or_default();
    let (known_value, asked_value) = (value(known), value(asked));
    let names = known_value.as_object().into_iter().flat_map(|object| object.keys());
    let differ = |name: &&String| known_value[*name] != asked_value[*name];
    names
        .filter(|name| differ(name))
        .map(|name| format!("{name} is {}, not {}", known_value[name], asked_value[name]))
        .next()
}

/// Makes the name of a new file survive a power cut.
fn sync_name(path: &Path) -> Result<(), WorkloadError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(keepup_sys::file::sync_directory(parent.unwrap_or(Path::new(".")))?)
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;
