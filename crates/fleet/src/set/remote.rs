//! A recording set whose recordings are read by the agents of their hosts, seen from the controller.
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use keepup_recording::id::Id;
use keepup_recording::recover::RecoverOptions;
use keepup_recording::set::{
    DigestRequest, DigestResult, Digests, MemberState, Presence, RecordingSet, SetEnd, SetInfo, SetMember,
    SetMemberInfo, SetMemberRecovery, SetMemberVerification, SetRecording, SetRecovery, SetVerification,
    describe_member, recover_member, verify_member,
};
use keepup_recording::verify::VerifyOptions;
use serde::de::DeserializeOwned;

use super::host::{Answer, Identity};
use super::plan::{SetPlan, SetTask};
use crate::jobs;
use crate::reply::Reply;

/// Hosts that execute plans.
pub trait Hosts {
    /// Executes the plans, by host, at the same time. Returns the outcome of each, or why it has none.
    fn run(&mut self, plans: &BTreeMap<String, String>) -> BTreeMap<String, Result<String, String>>;
}

/// A set with the hosts of its recordings.
pub struct RemoteSet<'a, H> {
    set: &'a RecordingSet,
    hosts: H,
}

/// Report about a recording, or why there is none.
type Report<T> = Result<Answer<T>, String>;

impl<'a, H: Hosts> RemoteSet<'a, H> {
    /// The set `set`.
    pub fn new(set: &'a RecordingSet, hosts: H) -> Self {
        Self { set, hosts }
    }

    /// Describes the set, as [`describe_set`](keepup_recording::set::describe_set).
    pub fn describe(&mut self, with_segments: bool) -> SetInfo {
        let set = self.set;
        let reports = self.descriptions(&set.recordings, with_segments);
        let join = |(entry, report): (&SetRecording, Report<SetMemberInfo>)| match report {
            Ok(Answer { found, facts, .. }) => SetMemberInfo { facts, ..found },
            Err(why) => describe_member(&not_here(entry, why), false),
        };
        SetInfo::new(self.set, self.set.recordings.iter().zip(reports).map(join).collect())
    }

    /// Verifies the set, as [`verify_set`](keepup_recording::set::verify_set). Without `threads`, each host
    /// uses all its CPUs.
    pub fn verify(&mut self, threads: Option<u16>) -> SetVerification {
        let (set, task) = (self.set, SetTask::Verify { threads });
        let reports = self.reports(&set.recordings, &task, |found: &SetMemberVerification| &found.member);
        let join = |(entry, report): (&SetRecording, Report<SetMemberVerification>)| match report {
            Ok(Answer { found, facts, .. }) => SetMemberVerification { facts, ..found },
            Err(why) => verify_member(&not_here(entry, why), VerifyOptions { threads: 1 }, &|| 0, &|_| {}),
        };
        let recordings = self.set.recordings.iter().zip(reports).map(join).collect();
        SetVerification::new(self.set, recordings, self)
    }

    /// Recovers the set, as [`recover_set`](keepup_recording::set::recover_set). Asks hosts without a known
    /// identity for it first: two hosts may reach the same recording.
    pub fn recover(&mut self, without_locks: bool) -> SetRecovery {
        let is_unknown = |entry: &&SetRecording| entry.id.is_none() && !entry.directories.is_empty();
        let unknown: Vec<SetRecording> = self.set.recordings.iter().filter(is_unknown).cloned().collect();
        let mut done: BTreeMap<String, SetMemberRecovery> = BTreeMap::new();
        let mut known: BTreeMap<String, Id> = BTreeMap::new();
        for (entry, report) in unknown.iter().zip(self.descriptions(&unknown, false)) {
            let host = entry.host.clone();
            match report {
                Ok(Answer { identity: Some(identity), .. }) => {
                    known.insert(host, identity.recording);
                }
                Ok(Answer { found, .. }) => {
                    done.insert(host, SetMemberRecovery { member: found.member, report: None });
                }
                Err(why) => {
                    done.insert(host, not_recovered(entry, why));
                }
            }
        }
        let due = self.set.recordings.iter().filter(|entry| !done.contains_key(&entry.host)).cloned();
        let with_id = |entry: SetRecording| {
            let id = entry.id.or_else(|| known.get(&entry.host).copied());
            SetRecording { id, ..entry }
        };
        let due: Vec<SetRecording> = due.map(with_id).collect();
        let task = SetTask::Recover { without_locks };
        let reports = self.reports(&due, &task, |found: &SetMemberRecovery| &found.member);
        for (entry, report) in due.iter().zip(reports) {
            let found = report.map_or_else(|why| not_recovered(entry, why), |answer| answer.found);
            done.insert(entry.host.clone(), found);
        }
        let recordings = self.set.recordings.iter().filter_map(|entry| done.remove(&entry.host)).collect();
        SetRecovery::new(self.set, recordings)
    }

    fn descriptions(&mut self, entries: &[SetRecording], with_segments: bool) -> Vec<Report<SetMemberInfo>> {
        let task = SetTask::Describe { with_segments };
        self.reports(entries, &task, |found: &SetMemberInfo| &found.member)
    }

    /// One report for each of these entries. Those without directories have no recording.
    fn reports<T: DeserializeOwned>(
        &mut self,
        entries: &[SetRecording],
        task: &SetTask,
        member: fn(&T) -> &MemberState,
    ) -> Vec<Report<T>> {
        let asked = entries.iter().filter(|entry| !entry.directories.is_empty());
        let mut answers = self.ask::<Answer<T>>(asked.map(|entry| (entry, task.clone())).collect());
        let mut taken: BTreeSet<Id> = self.set.recordings.iter().filter_map(|entry| entry.id).collect();
        let needs_facts = !matches!(task, SetTask::Recover { .. });
        let mut report = |entry: &SetRecording| {
            let answer =
                answers.remove(&entry.host).unwrap_or_else(|| Err("it has no directories".into()))?;
            check(entry, member(&answer.found), &answer, needs_facts)?;
            check_identity(entry, answer.identity.as_ref(), &mut taken).map(|()| answer)
        };
        entries.iter().map(&mut report).collect()
    }

    /// Executes tasks on hosts and collects all parts of their answers.
    fn ask<T: DeserializeOwned>(
        &mut self,
        tasks: Vec<(&SetRecording, SetTask)>,
    ) -> BTreeMap<String, Result<T, String>> {
        let (mut answers, mut limits) = (BTreeMap::new(), BTreeMap::new());
        let mut plans: BTreeMap<String, Result<SetPlan, String>> = BTreeMap::new();
        for (entry, task) in tasks {
            limits.insert(entry.host.as_str(), task.answer_bytes_max());
            plans.insert(entry.host.clone(), SetPlan::new(self.set, entry, task));
        }
        let mut received: BTreeMap<String, Reply> = BTreeMap::new();
        while !plans.is_empty() {
            let mut texts = BTreeMap::new();
            for (host, plan) in std::mem::take(&mut plans) {
                let encode =
                    |plan: SetPlan| jobs::encode(jobs::SET, &plan).map_err(|error| error.to_string());
                match plan.and_then(encode) {
                    Ok(text) => drop(texts.insert(host, text)),
                    Err(why) => drop(answers.insert(host, Err(why))),
                }
            }
            let mut outcomes = self.hosts.run(&texts);
            for host in texts.into_keys() {
                let outcome = outcomes.remove(&host).unwrap_or_else(|| Err("no result".to_owned()));
                let reply = received.entry(host.clone()).or_default();
                let added = outcome.and_then(|part| reply.add(&part).map_err(|error| error.to_string()));
                match added {
                    Err(why) => drop(answers.insert(host, Err(why))),
                    Ok(Some(number)) => drop(plans.insert(host, Ok(SetPlan::Part { number }))),
                    Ok(None) => {
                        let limit_bytes = limits.get(host.as_str()).copied().unwrap_or_default();
                        let answer = decode(&received.remove(&host).unwrap_or_default(), limit_bytes);
                        answers.insert(host, answer);
                    }
                }
            }
        }
        answers
    }
}

impl<H: Hosts> Digests for RemoteSet<'_, H> {
    fn digests(
        &mut self,
        requests: &BTreeMap<&str, Vec<DigestRequest>>,
    ) -> BTreeMap<String, Vec<DigestResult>> {
        let set = self.set;
        let entries = set.recordings.iter();
        let tasks = entries
            .filter_map(|entry| Some((entry, SetTask::digest(requests.get(entry.host.as_str())?))))
            .collect();
        let mut answers = self.ask::<Vec<DigestResult>>(tasks);
        let answer = |(host, requests): (&&str, &Vec<DigestRequest>)| {
            let answer = answers.remove(*host).unwrap_or_else(|| Err("no result".to_owned()));
            let answer =
                answer.unwrap_or_else(|why| vec![Err(format!("host {host}: {why}")); requests.len()]);
            ((*host).to_owned(), answer)
        };
        requests.iter().map(answer).collect()
    }
}

fn decode<T: DeserializeOwned>(reply: &Reply, limit_bytes: u64) -> Result<T, String> {
    let (mut text, mut reader) = (String::new(), reply.reader().take(limit_bytes.saturating_add(1)));
    reader.read_to_string(&mut text).map_err(|error| format!("malformed answer: {error}"))?;
    if text.len() as u64 > limit_bytes {
        return Err(format!("malformed answer: more than {limit_bytes} bytes"));
    }
    serde_json::from_str(&text).map_err(|error| format!("malformed answer: {error}"))
}

/// The entry of a host whose agent gives no report.
fn not_here(entry: &SetRecording, why: String) -> SetMember {
    let presence = match entry.end {
        SetEnd::Absent => Presence::Absent,
        SetEnd::Finished | SetEnd::Failed | SetEnd::Lost => Presence::NotHere(why),
    };
    SetMember { entry: entry.clone(), directories: Vec::new(), presence }
}

fn not_recovered(entry: &SetRecording, why: String) -> SetMemberRecovery {
    recover_member(&not_here(entry, why), RecoverOptions::default(), &mut |_| {})
}

/// Checks that a report is about `entry` and has all parts.
fn check<T>(
    entry: &SetRecording,
    member: &MemberState,
    answer: &Answer<T>,
    needs_facts: bool,
) -> Result<(), String> {
    let Answer { identity, facts, .. } = answer;
    let is_of_entry = (&member.host, member.end, &member.why) == (&entry.host, entry.end, &entry.why);
    let is_of_recording = match (identity, facts) {
        (Some(identity), Some(Ok(facts))) => facts.recording == identity.recording,
        _ => true,
    };
    if !is_of_entry || !is_of_recording || (member.is_absent() && entry.end != SetEnd::Absent) {
        return Err("its report is not about this recording".to_owned());
    }
    let has_facts = facts.is_some() == (needs_facts && member.is_here);
    match has_facts && identity.is_some() == member.is_here {
        true => Ok(()),
        false => Err("malformed answer: it does not describe the recording".to_owned()),
    }
}

/// Checks that a recording is that of `entry`, and that no other host has it.
fn check_identity(
    entry: &SetRecording,
    identity: Option<&Identity>,
    taken: &mut BTreeSet<Id>,
) -> Result<(), String> {
    let Some(Identity { recording, directory }) = identity else { return Ok(()) };
    match entry.id.map_or_else(|| taken.insert(*recording), |id| id == *recording) {
        true => Ok(()),
        false => Err(format!("{} has another recording", directory.display())),
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
