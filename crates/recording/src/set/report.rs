//! Description, verification and recovery of all recordings of a set.

use keepup_error::Cause;
use serde::{Deserialize, Serialize};

use super::account::{SetAccount, account, account_and_compare};
use super::members::{OpenSet, Presence, SetMember};
use super::{SetEnd, SetMove};
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
#[derive(Clone, Debug, Serialize)]
pub struct SetMemberInfo {
    /// Its state here.
    #[serde(flatten)]
    pub member: MemberState,
    /// The recording, if it is here and can be read.
    pub info: Option<RecordingInfo>,
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
#[derive(Clone, Debug, Serialize)]
pub struct SetMemberVerification {
    /// Its state here.
    #[serde(flatten)]
    pub member: MemberState,
    /// The report, if the recording is here with all volumes.
    pub report: Option<VerifyReport>,
    /// Duration of the verification, in seconds.
    pub seconds: f64,
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
#[derive(Clone, Debug, Serialize)]
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
    let describe = |member: &SetMember| {
        let mut state = MemberState::new(member);
        let described = member.recording().map(match with_segments {
            true => info_with_segments,
            false => info,
        });
        let info = described.and_then(|info| info.map_err(|error| state.fail(&error)).ok());
        SetMemberInfo { member: state, info }
    };
    let set = open.set.clone();
    SetInfo {
        name: set.name,
        set: set.id,
        run: set.run,
        created_unix_ns: set.created_unix_ns,
        fleet: set.fleet,
        recordings: open.members.iter().map(describe).collect(),
        moves: set.moves,
        account: account(open),
    }
}

/// Verifies each recording that is here, and the streams over all of them. `now_ns` reads a clock;
/// `progress` is called often and from several threads.
pub fn verify_set(
    open: &OpenSet,
    options: VerifyOptions,
    now_ns: &dyn Fn() -> u64,
    progress: &(dyn Fn(Progress) + Sync),
) -> SetVerification {
    let whole = |member: &&SetMember| member.recording().is_some_and(|found| found.missing().is_empty());
    let stored = open.members.iter().filter(whole).filter_map(SetMember::recording).map(stored_bytes);
    let total_bytes = stored.fold(0, u64::saturating_add);
    let mut before_bytes: u64 = 0;
    let verify = |member: &SetMember| {
        let begin_ns = now_ns();
        let verify = |recording: &Recording| {
            let before = before_bytes;
            before_bytes = before_bytes.saturating_add(stored_bytes(recording));
            verify(recording, options, &|Progress { done_bytes, known_bytes, .. }| {
                let done_bytes = before.saturating_add(done_bytes);
                progress(Progress { done_bytes, known_bytes, total_bytes });
            })
        };
        let report = Some(member).filter(whole).and_then(SetMember::recording).map(verify);
        let seconds = now_ns().saturating_sub(begin_ns).max(1) as f64 / 1e9;
        SetMemberVerification { member: MemberState::new(member), report, seconds }
    };
    let recordings: Vec<_> = open.members.iter().map(verify).collect();
    let account = account_and_compare(open);
    let is_intact = |found: &SetMemberVerification| match &found.report {
        Some(report) => report.is_intact(),
        None => found.member.is_absent(),
    };
    let whole = recordings.iter().all(is_intact) && account.is_complete();
    SetVerification { name: open.set.name.clone(), set: open.set.id, recordings, account, whole }
}

/// Recovers each recording that is here and needs it. A failure of one does not prevent the others.
pub fn recover_set(
    open: &OpenSet,
    options: RecoverOptions,
    progress: &mut dyn FnMut(Progress),
) -> SetRecovery {
    let mut recover = |member: &SetMember| {
        let mut state = MemberState::new(member);
        let is_due = member.recording().is_some_and(needs_recovery);
        let recovered = is_due.then(|| recover(&member.directories, options, progress));
        let report = recovered.and_then(|report| report.map_err(|error| state.fail(&error)).ok());
        SetMemberRecovery { member: state, report }
    };
    let recordings: Vec<_> = open.members.iter().map(&mut recover).collect();
    let is_complete = |found: &SetMemberRecovery| match &found.report {
        Some(report) => report.complete,
        None => found.member.problem.is_none(),
    };
    let complete = recordings.iter().all(is_complete);
    SetRecovery { name: open.set.name.clone(), set: open.set.id, recordings, complete }
}

/// Whether recovery has anything to do.
fn needs_recovery(recording: &Recording) -> bool {
    let is_sealed = matches!(state(recording), State::Clean | State::Unclean { .. });
    !is_sealed || !recording.has_master() || !recording.missing().is_empty()
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
