//! Part of a host: work on its recording.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use keepup_measure::clock::Clock;
use keepup_recording::id::Id;
use keepup_recording::recover::RecoverOptions;
use keepup_recording::set::{
    DigestRequest, OpenSet, RecordingFacts, RecordingSet, SetMember, describe_member, digest, recover_member,
    verify_member, verify_options,
};
use keepup_recording::verify::VerifyOptions;
use serde::{Deserialize, Serialize};

use super::plan::{SetPlan, SetTask};
use crate::directories::Directories;
use crate::host::Done;
use crate::part::PartControl;
use crate::reply::{Reply, ReplyWriter};

/// What the part of a host works with.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) clock: Arc<dyn Clock>,
    /// Directories that may be used.
    pub(super) directories: Directories,
    /// Bytes read for the current task.
    pub(super) read_bytes: Arc<AtomicU64>,
    /// The latest answer.
    pub(super) answer: Arc<Mutex<Reply>>,
}

/// Report about the recording of a host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer<T> {
    pub(super) found: T,
    /// The recording; `None` if it is not here.
    pub(super) identity: Option<Identity>,
    /// What it says about its streams; `None` if it is not here, and of a recovery.
    pub(super) facts: Option<Result<RecordingFacts, String>>,
}

/// Identity of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    pub(super) recording: Id,
    /// Its directory on the first volume.
    pub(super) directory: PathBuf,
}

impl Identity {
    fn of(member: &SetMember) -> Option<Self> {
        let recording = member.recording()?;
        let directory = recording.volumes().first().map(|volume| volume.dir().to_owned());
        Some(Self { recording: recording.manifest().recording, directory: directory.unwrap_or_default() })
    }
}

/// Waits for the start, executes the plan, and returns a part of the answer.
pub(super) fn work(plan: &SetPlan, setting: &Setting, control: &PartControl) -> Result<String, String> {
    control.report(Done::Prepared { run: control.run, address: None });
    if control.wait().is_none() {
        return Err("ended before the start".to_owned());
    }
    let answer = || setting.answer.lock().unwrap_or_else(PoisonError::into_inner);
    let part = match plan {
        SetPlan::Part { number } => answer().part(*number),
        SetPlan::Recording { set, taken, task } => {
            setting.read_bytes.store(0, Ordering::Relaxed);
            *answer() = Reply::default();
            let reply = execute((set.as_str(), taken.as_slice()), task, setting)?;
            let first = reply.part(0);
            *answer() = reply;
            first
        }
    };
    part.map_err(|error| error.to_string())
}

pub(super) fn pack(answer: &impl Serialize) -> Result<Reply, String> {
    let json = serde_json::to_vec(answer).map_err(|error| format!("cannot encode the result: {error}"))?;
    let mut writer = ReplyWriter::new();
    writer.write(&json).and_then(|()| writer.finish()).map_err(|error| error.to_string())
}

/// Executes a task.
fn execute(own: (&str, &[Id]), task: &SetTask, setting: &Setting) -> Result<Reply, String> {
    let open = open(own, &setting.directories)?;
    let member = open.members.first().ok_or("malformed plan: no recording")?;
    let identity = Identity::of(member);
    let progress = |done_bytes: u64| setting.read_bytes.store(done_bytes, Ordering::Relaxed);
    match task {
        SetTask::Describe { with_segments } => {
            let mut found = describe_member(member, *with_segments);
            let facts = found.facts.take();
            pack(&Answer { found, identity, facts })
        }
        SetTask::Verify { threads } => {
            let threads = verify_options(*threads).threads.clamp(1, 1024);
            let now_ns = || setting.clock.now_ns();
            let mut found = verify_member(member, VerifyOptions { threads }, &now_ns, &|read| {
                progress(read.done_bytes);
            });
            let facts = found.facts.take();
            pack(&Answer { found, identity, facts })
        }
        SetTask::Recover { without_locks } => {
            let options = RecoverOptions { without_locks: *without_locks };
            let found = recover_member(member, options, &mut |read| progress(read.done_bytes));
            pack(&Answer { found, identity, facts: None })
        }
        SetTask::Digest(requests) => pack(&digests(member, requests)?),
    }
}

/// Digests of events, in the order of the requests.
fn digests(
    member: &SetMember,
    requests: &[(u32, u64, u64, u64)],
) -> Result<Vec<keepup_recording::set::DigestResult>, String> {
    let recording = member.recording().ok_or("the recording is no longer here")?;
    let request = |&(stream, start, end, step)| DigestRequest { stream, start, end, step };
    Ok(digest(recording, &requests.iter().map(request).collect::<Vec<_>>()))
}

/// Opens the recording of the host. The plan comes from the network, and the directories of other volumes
/// from the recording. Directories that do not exist are reported as with local paths.
fn open((set, taken): (&str, &[Id]), directories: &Directories) -> Result<OpenSet, String> {
    let set = RecordingSet::parse(set).map_err(|cause| format!("malformed plan: {}", cause.to_text()))?;
    let [entry] = set.recordings.as_slice() else {
        return Err("malformed plan: it needs one recording".to_owned());
    };
    let own = entry.directories.iter().map(|directory| directories.check_to_read(directory));
    let own = own.collect::<Result<Vec<_>, _>>()?;
    let at = [(entry.host.clone(), own)].into();
    let open = OpenSet::open_in(Path::new("/"), set, &at, taken);
    for volume in open.recordings().flat_map(|(_, recording)| recording.volumes()) {
        directories.check(volume.dir())?;
    }
    Ok(open)
}
