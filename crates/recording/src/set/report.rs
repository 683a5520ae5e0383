//! Description, verification and recovery of all recordings of a set.

use keepup_error::Cause;
use serde::{Deserialize, Serialize};

use super::account::{Digests, Found, RecordingFacts, SetAccount, account};
use super::members::{OpenSet, Presence, SetMember};
use super::{RecordingSet, SetEnd, SetMove};
use crate::error::RecordingError;
use crate::id::Id;
use crate::info::{RecordingInfo, State, info, info_with_segments, state};
use crate::progress::Progress;
use crate::reader::Recording;
use crate::recover::{RecoverOptions, RecoverReport, recover};
use crate::verify::{VerifyOptions, VerifyReport, verify};

/// Description of a set.
#[derive(Clone, Debug, Serialize)]
pub struct SetInfo {
    /// Name of the run.
    pub name: String,
    /// Identity of the set.
    pub set: Id,
    /// Run number, where runs are numbered.
    pub run: Option<u64>,
    /// Creation time, ns since the Unix epoch.
    pub created_unix_ns: u64,
    /// Name of the fleet.
    pub fleet: String,
    /// One for each recorder of the run.
    pub recordings: Vec<SetMemberInfo>,
    /// Streams that moved.
    pub moves: Vec<SetMove>,
    /// Streams over all recordings that are here.
    pub account: SetAccount,
}

/// Description of the recording of one host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetMemberInfo {
    /// Its state here.
    #[serde(flatten)]
    pub member: MemberState,
    /// The recording, if it is here and can be read.
    pub info: Option<RecordingInfo>,
    /// What it says about its streams, or why that cannot be read; `None` if it is not here.
    #[serde(skip)]
    pub facts: Option<Result<RecordingFacts, String>>,
}

/// State of the recording of one host, as the set file says and on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberState {
    /// Host.
    pub host: String,
    /// End, as known to the controller.
    pub end: SetEnd,
    /// Reason for an end that is not "finished".
    pub why: Option<String>,
    /// Whether the recording is here.
    pub is_here: bool,
    /// Why it is not here, or cannot be used.
    pub problem: Option<String>,
}

/// Verification of a set.
#[derive(Clone, Debug, Serialize)]
pub struct SetVerification {
    /// Name of the run.
    pub name: String,
    /// Identity of the set.
    pub set: Id,
    /// One for each recorder of the run.
    pub recordings: Vec<SetMemberVerification>,
    /// Streams over all recordings that are here.
    pub account: SetAccount,
    /// Whether all recordings are here and intact, and all events of all streams are present.
    pub whole: bool,
}

/// Verification of the recording of one host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetMemberVerification {
    /// Its state here.
    #[serde(flatten)]
    pub member: MemberState,
    /// The report, if the recording is here with all volumes.
    pub report: Option<VerifyReport>,
    /// Duration of the verification, in seconds.
    pub seconds: f64,
    /// What it says about its streams, or why that cannot be read; `None` if it is not here.
    #[serde(skip)]
    pub facts: Option<Result<RecordingFacts, String>>,
}

/// Recovery of a set.
#[derive(Clone, Debug, Serialize)]
pub struct SetRecovery {
    /// Name of the run.
    pub name: String,
    /// Identity of the set.
    pub set: Id,
    /// One for each recorder of the run.
    pub recordings: Vec<SetMemberRecovery>,
    /// Whether all recordings are here, sealed and complete, as far as recovery has checked.
    pub complete: bool,
}

/// Recovery of the recording of one host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetMemberRecovery {
    /// Its state here.
    #[serde(flatten)]
    pub member: MemberState,
    /// The report; `None` if the recording is not here, was sealed before, or could not be recovered.
    pub report: Option<RecoverReport>,
}

impl MemberState {
    fn new(member: &SetMember) -> Self {
        let problem = match &member.presence {
            Presence::Here(recording) => missing_volumes(recording),
            Presence::NotHere(why) => Some(why.clone()),
            Presence::Unusable(cause) => Some(cause.to_text()),
            Presence::Absent => None,
        };
        Self {
            host: member.entry.host.clone(),
            end: member.entry.end,
            why: member.entry.why.clone(),
            is_here: member.recording().is_some(),
            problem,
        }
    }

    /// Whether the recording is not here because there is none.
    pub fn is_absent(&self) -> bool {
        !self.is_here && self.problem.is_none()
    }

    fn with<'a>(&'a self, facts: Option<&'a Result<RecordingFacts, String>>) -> Found<'a> {
        Found { host: &self.host, is_incomplete: self.problem.is_some(), facts }
    }

    fn fail(&mut self, error: &RecordingError) {
        self.problem = Some(Cause::of(error).to_text());
    }
}

/// Bytes of all segments.
fn stored_bytes(recording: &Recording) -> u64 {
    let segments = recording.volumes().iter().flat_map(|volume| volume.segments());
    segments.map(|segment| segment.file_bytes()).fold(0, u64::saturating_add)
}

fn missing_volumes(recording: &Recording) -> Option<String> {
    let missing: Vec<String> = recording.missing().iter().map(|path| path.display().to_string()).collect();
    (!missing.is_empty()).then(|| format!("volume not found: {}", missing.join(", ")))
}

/// Describes a set from journals and indexes; no event is read.
pub fn describe_set(open: &OpenSet, with_segments: bool) -> SetInfo {
    let recordings = open.members.iter().map(|member| describe_member(member, with_segments)).collect();
    SetInfo::new(&open.set, recordings)
}

/// Describes the recording of one host, if it is here.
pub fn describe_member(member: &SetMember, with_segments: bool) -> SetMemberInfo {
    let mut state = MemberState::new(member);
    let info = member.recording().map(match with_segments {
        true => info_with_segments,
        false => info,
    });
    let facts = member.recording().zip(info.as_ref()).map(|(recording, info)| match info {
        Ok(info) => RecordingFacts::read(recording, info).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    });
    let info = info.and_then(|info| info.map_err(|error| state.fail(&error)).ok());
    SetMemberInfo { member: state, info, facts }
}

impl SetInfo {
    /// Joins the descriptions of the recordings of `set`, in its order.
    pub fn new(set: &RecordingSet, recordings: Vec<SetMemberInfo>) -> Self {
        let found = recordings.iter().map(|found| found.member.with(found.facts.as_ref()));
        let account = account(&set.moves, found, None);
        let RecordingSet { name, run, id, created_unix_ns, fleet, moves, .. } = set.clone();
        SetInfo { name, set: id, run, created_unix_ns, fleet, recordings, moves, account }
    }
}

/// Options of a verification on this machine, by default with a thread for each CPU.
pub fn verify_options(threads: Option<u16>) -> VerifyOptions {
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    VerifyOptions { threads: threads.map_or_else(available, usize::from) }
}

/// Verifies each recording that is here, and the streams over all of them. `now_ns` reads a clock;
/// `progress` is called often and from several threads.
pub fn verify_set(
    open: &OpenSet,
    options: VerifyOptions,
    now_ns: &dyn Fn() -> u64,
    progress: &(dyn Fn(Progress) + Sync),
) -> SetVerification {
    let stored = open.members.iter().filter_map(whole).map(stored_bytes);
    let total_bytes = stored.fold(0, u64::saturating_add);
    let mut before_bytes: u64 = 0;
    let mut recordings = Vec::new();
    for member in &open.members {
        recordings.push(verify_member(
            member,
            options,
            now_ns,
            &|Progress { done_bytes, known_bytes, .. }| {
                let done_bytes = before_bytes.saturating_add(done_bytes);
                progress(Progress { done_bytes, known_bytes, total_bytes });
            },
        ));
        before_bytes = before_bytes.saturating_add(whole(member).map_or(0, stored_bytes));
    }
    SetVerification::new(&open.set, recordings, &mut &*open)
}

/// The recording of a host, if it is here with all volumes.
fn whole(member: &SetMember) -> Option<&Recording> {
    member.recording().filter(|found| found.missing().is_empty())
}

/// Verifies the recording of one host, if it is here with all volumes; arguments as of [`verify_set`].
pub fn verify_member(
    member: &SetMember,
    options: VerifyOptions,
    now_ns: &dyn Fn() -> u64,
    progress: &(dyn Fn(Progress) + Sync),
) -> SetMemberVerification {
    let begin_ns = now_ns();
    let report = whole(member).map(|recording| verify(recording, options, progress));
    let seconds = now_ns().saturating_sub(begin_ns).max(1) as f64 / 1e9;
    let read = |recording| RecordingFacts::read(recording, &info(recording)?);
    let facts = member.recording().map(|recording| read(recording).map_err(|error| error.to_string()));
    SetMemberVerification { member: MemberState::new(member), report, seconds, facts }
}

impl SetVerification {
    /// Joins the verifications of the recordings of `set`, in its order, and compares duplicates.
    pub fn new(
        set: &RecordingSet,
        recordings: Vec<SetMemberVerification>,
        digests: &mut dyn Digests,
    ) -> Self {
        let found = recordings.iter().map(|found| found.member.with(found.facts.as_ref()));
        let account = account(&set.moves, found, Some(digests));
        let is_intact = |found: &SetMemberVerification| match &found.report {
            Some(report) => report.is_intact(),
            None => found.member.is_absent(),
        };
        let whole = recordings.iter().all(is_intact) && account.is_complete();
        SetVerification { name: set.name.clone(), set: set.id, recordings, account, whole }
    }
}

/// Recovers each recording that is here and needs it. A failure of one does not prevent the others.
pub fn recover_set(
    open: &OpenSet,
    options: RecoverOptions,
    progress: &mut dyn FnMut(Progress),
) -> SetRecovery {
    let recover = |member| recover_member(member, options, progress);
    SetRecovery::new(&open.set, open.members.iter().map(recover).collect())
}

/// Recovers the recording of one host, if it is here and needs it.
pub fn recover_member(
    member: &SetMember,
    options: RecoverOptions,
    progress: &mut dyn FnMut(Progress),
) -> SetMemberRecovery {
    let mut state = MemberState::new(member);
    let is_due = member.recording().is_some_and(needs_recovery);
    let recovered = is_due.then(|| recover(&member.directories, options, progress));
    let report = recovered.and_then(|found| found.map_err(|error| state.fail(&error)).ok());
    SetMemberRecovery { member: state, report }
}

impl SetRecovery {
    /// Joins the recoveries of the recordings of `set`, in its order.
    pub fn new(set: &RecordingSet, recordings: Vec<SetMemberRecovery>) -> Self {
        let is_complete = |found: &SetMemberRecovery| match &found.report {
            Some(report) => report.complete,
            None => found.member.problem.is_none(),
        };
        let complete = recordings.iter().all(is_complete);
        SetRecovery { name: set.name.clone(), set: set.id, recordings, complete }
    }
}

/// Whether recovery has anything to do.
fn needs_recovery(recording: &Recording) -> bool {
    let is_sealed = matches!(state(recording), State::Clean | State::Unclean { .. });
    !is_sealed || !recording.has_master() || !recording.missing().is_empty()
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
