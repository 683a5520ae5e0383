//! Account of a soak and the state file that stores it: one checksummed line per event.
//!
//! A line is a JSON object with its CRC-32, as in a recording's journal. Invariants: the account is
//! derived from the lines alone, so a resumed soak has the same account; each line is durable
//! before the next; a damaged file, or one of another plan, is refused and not modified. An
//! incomplete last line, left by a crash, is cut off and reported.
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use keepup_measure::errors::ErrorCounter;
use keepup_measure::space::Space;
use keepup_recording::id::Id;
use keepup_recording::line::{LINE_BYTES_MAX, parse_line, put_line};
use keepup_results::shell::quoted;
use keepup_results::{SoakDamage, SoakMismatch, SoakTotals};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{SoakError, system};
use crate::plan::{ReferencePlan, SoakPlan};

/// Version of the line format.
const VERSION: u32 = 1;
/// Mismatches listed in a result; further ones are only counted.
const LISTED_MAX: usize = 100;
/// Damaged files kept for the user.
const KEPT_MAX: usize = 3;

/// First line of a soak's state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoakStart {
    /// Version of the following lines.
    version: u32,
    /// Identity of the soak.
    pub id: Id,
    /// Start time, ns since the Unix epoch.
    pub time_unix_ns: u64,
    /// Settings of every turn.
    pub plan: SoakPlan,
    /// Error counters before the first turn.
    pub counters: Vec<ErrorCounter>,
}

/// One line of the state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Record {
    /// Always the first line.
    Begin(SoakStart),
    /// A session started.
    #[serde(rename = "sitting")]
    Session {
        /// Time, ns since the Unix epoch.
        time_unix_ns: u64,
    },
    /// Digests of the references, in the order of the plan.
    Digests {
        /// Digests in hexadecimal.
        digests: Vec<String>,
    },
    /// Work of a turn or of the completed part of one.
    Turn {
        /// Increment of the totals.
        totals: SoakTotals,
    },
    /// A file that differs from what was written.
    Mismatch(SoakMismatch),
}

/// Account of a soak over all its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// First line of the state file.
    pub start: SoakStart,
    /// Number of sessions.
    pub sessions: u64,
    /// Digests of the references, in the order of the plan.
    pub digests: Vec<String>,
    /// Totals of the work done.
    pub totals: SoakTotals,
    /// Totals of the damage found.
    pub damage: SoakDamage,
    /// The first mismatches.
    pub mismatches: Vec<SoakMismatch>,
    kept: usize,
}

/// The account and its state file.
#[derive(Debug)]
pub struct SoakState {
    /// Account so far.
    pub account: Account,
    /// Length of the incomplete last line, cut off; its turn is repeated. Bytes.
    pub torn_bytes: u64,
    state: Option<StateFile>,
}

#[derive(Debug)]
struct StateFile {
    file: File,
    path: PathBuf,
    line: Vec<u8>,
    /// Length of all complete lines, bytes.
    bytes: u64,
    is_broken: bool,
}

impl SoakStart {
    /// First line of a new soak.
    pub fn new(id: Id, time_unix_ns: u64, plan: SoakPlan, counters: Vec<ErrorCounter>) -> Self {
        Self { version: VERSION, id, time_unix_ns, plan, counters }
    }

    /// Number that distinguishes this soak's stamps.
    pub fn number(&self) -> u64 {
        u64::from_str_radix(&self.id.to_string()[..16], 16).unwrap_or_default()
    }

    /// Prefix of the names of all files on a volume.
    pub fn name(&self) -> String {
        format!("keepup-soak-{}", &self.id.to_string()[..8])
    }
}

impl Account {
    fn new(start: SoakStart) -> Self {
        Self {
            start,
            sessions: 0,
            digests: Vec::new(),
            totals: SoakTotals::default(),
            damage: SoakDamage::default(),
            mismatches: Vec::new(),
            kept: 0,
        }
    }

    fn enter(&mut self, record: Record) {
        match record {
            // Only the first line, which created the account.
            Record::Begin(_) => {}
            Record::Session { .. } => self.sessions += 1,
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

impl SoakState {
    /// A soak without a state file.
    pub fn without_state(start: SoakStart) -> Self {
        Self { account: Account::new(start), torn_bytes: 0, state: None }
    }

    /// Resumes the soak in the state file `path`, or starts a new one with `start`.
    ///
    /// # Errors
    /// The file is locked by another process, damaged, or of another plan; it is not modified.
    pub fn open(path: &Path, start: SoakStart) -> Result<Self, SoakError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o644);
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = options.custom_flags(flags.bits() as i32).open(path).map_err(|e| not_opened(path, e))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(SoakError::StateBusy { path: path.into() }),
            // A file system without locks is still usable.
            Err(Errno::NOTSUP | Errno::NOSYS | Errno::NOLCK) | Ok(()) => {}
            Err(e) => return Err(not_opened(path, e.into())),
        }
        let read = read_state(&file, path)?;
        let mut state = StateFile { file, path: path.into(), line: Vec::new(), bytes: 0, is_broken: false };
        let Some((account, whole_bytes, torn_bytes)) = read else {
            // Empty, or an incomplete first line.
            state.cut(0)?;
            state.append(&Record::Begin(start.clone()))?;
            sync_name(path)?;
            return Ok(Self { account: Account::new(start), torn_bytes: 0, state: Some(state) });
        };
        if let Some(what) = difference(&account.start.plan, &start.plan) {
            return Err(SoakError::StatePlan { path: path.into(), what });
        }
        state.cut(whole_bytes)?;
        Ok(Self { account, torn_bytes, state: Some(state) })
    }

    /// Appends a line durably and adds it to the account.
    pub(crate) fn note(&mut self, record: Record) -> Result<(), SoakError> {
        let written = self.state.as_mut().map_or(Ok(()), |state| state.append(&record));
        // The result includes it even if the file cannot be written.
        self.account.enter(record);
        written
    }

    /// Path for the next damaged file, unless enough are kept or the volume has too little free
    /// space.
    pub(crate) fn path_for_damaged(&self, volume: &Path) -> Option<PathBuf> {
        let plan = &self.account.start.plan;
        let needed = plan.stamped_bytes.max(self.largest_copy());
        let has_room = Space::of(volume).is_ok_and(|space| space.free_bytes > 2 * needed);
        let name = format!("{}-damaged-{}", self.account.start.name(), self.account.kept + 1);
        let place = volume.join(name);
        (self.account.kept < KEPT_MAX && has_room && !place.exists()).then_some(place)
    }

    fn largest_copy(&self) -> u64 {
        let sizes = self.account.start.plan.references.iter().map(ReferencePlan::bytes);
        sizes.max().unwrap_or(0)
    }
}

impl StateFile {
    fn append(&mut self, record: &Record) -> Result<(), SoakError> {
        let action = format!("append to the state file {}", self.path.display());
        let failed = system(&action);
        if self.is_broken {
            return Err(failed(std::io::Error::other("an earlier write to it failed")));
        }
        put_line(&mut self.line, record).map_err(std::io::Error::other).map_err(&failed)?;
        let written = self.file.write_all_at(&self.line, self.bytes).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Part of the line may have been written; no further line may follow it.
            self.is_broken = true;
            let _ = self.file.set_len(self.bytes);
            return Err(failed(error));
        }
        self.bytes += self.line.len() as u64;
        Ok(())
    }

    /// Truncates the file to `bytes` and continues there.
    fn cut(&mut self, bytes: u64) -> Result<(), SoakError> {
        self.bytes = bytes;
        let action = format!("cut off the torn line of the state file {}", self.path.display());
        self.file.set_len(bytes).map_err(system(&action))
    }
}

/// Error for a state file that cannot be opened, with a hint.
fn not_opened(path: &Path, source: std::io::Error) -> SoakError {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists());
    let hint = match parent {
        Some(missing) => format!("mkdir -p {}", quoted(&missing.display().to_string())),
        None if path.is_symlink() => "name the file itself, not a symbolic link".into(),
        None => "choose another path with --state FILE".into(),
    };
    SoakError::StateFile { path: path.into(), source, hint }
}

/// Account of a state file, the length of its complete lines and the length of the rest, in bytes;
/// none without a complete line.
fn read_state(file: &File, path: &Path) -> Result<Option<(Account, u64, u64)>, SoakError> {
    let mut reader = BufReader::new(file);
    let (mut account, mut offset, mut number) = (None::<Account>, 0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        number += 1;
        let damaged = |what: String| SoakError::State { path: path.into(), line: number, offset, what };
        let read = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        let read = read.map_err(system(&format!("read the state file {}", path.display())))? as u64;
        let Some((b'\n', content)) = line.split_last() else {
            if read > LINE_BYTES_MAX as u64 {
                return Err(damaged(format!("it is longer than {LINE_BYTES_MAX} bytes")));
            }
            // A file that does not start like a state file is not ours and must not be truncated.
            if account.is_none() && read > 0 && !r#"{"t":"begin","#.as_bytes().starts_with(first(&line)) {
                return Err(damaged("it does not start with the first line of a soak".into()));
            }
            return Ok(account.map(|account| (account, offset, read)));
        };
        let record = parse_line::<Record>(content).map_err(damaged)?;
        match (&mut account, record) {
            (None, Record::Begin(begin)) if begin.version == VERSION => account = Some(Account::new(begin)),
            (None, Record::Begin(begin)) => {
                return Err(damaged(format!("its version is {}, not {VERSION}", begin.version)));
            }
            (None, _) => return Err(damaged("it does not start with the first line of a soak".into())),
            (Some(_), Record::Begin(_)) => {
                return Err(damaged("it contains the first line of a second soak".into()));
            }
            (Some(account), record) => account.enter(record),
        }
        offset += read;
    }
}

/// Prefix of a first line, as long as `line` if that is shorter.
fn first(line: &[u8]) -> &[u8] {
    &line[..line.len().min(r#"{"t":"begin","#.len())]
}

/// First setting in which two plans differ.
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

/// Syncs the directory so that a new file survives a power failure.
fn sync_name(path: &Path) -> Result<(), SoakError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(keepup_sys::file::sync_directory(parent.unwrap_or(Path::new(".")))?)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
