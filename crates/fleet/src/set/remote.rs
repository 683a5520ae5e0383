//! A recording set whose recordings are read by the agents of their hosts, seen from the controller.
use std::collections::{BTreeMap, BTreeSet};

use keepup_recording::id::Id;
use keepup_recording::recover::RecoverOptions;
use keepup_recording::set::{
    DigestRequest, DigestResult, Digests, MemberState, Presence, RecordingFacts, RecordingSet, SetEnd,
    SetInfo, SetMember, SetMemberInfo, SetMemberRecovery, SetMemberVerification, SetRecording, SetRecovery,
    SetVerification, describe_member, recover_member, verify_member,
};
use keepup_recording::verify::VerifyOptions;
use serde::de::DeserializeOwned;

use super::host::Answer;
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
        let reports =
            self.reports(&SetTask::Describe { with_segments }, |found: &SetMemberInfo| &found.member);
        let join = |(entry, report): (&SetRecording, Report<SetMemberInfo>)| match report {
            Ok(Answer { found, facts }) => SetMemberInfo { facts, ..found },
            Err(why) => describe_member(&not_here(entry, why), false),
        };
        SetInfo::new(self.set, self.set.recordings.iter().zip(reports).map(join).collect())
    }

    /// Verifies the set, as [`verify_set`](keepup_recording::set::verify_set). Without `threads`, each host
    /// uses all its CPUs.
    pub fn verify(&mut self, threads: Option<u16>) -> SetVerification {
        let reports =
            self.reports(&SetTask::Verify { threads }, |found: &SetMemberVerification| &found.member);
        let join = |(entry, report): (&SetRecording, Report<SetMemberVerification>)| match report {
            Ok(Answer { found, facts }) => SetMemberVerification { facts, ..found },
            Err(why) => verify_member(&not_here(entry, why), VerifyOptions { threads: 1 }, &|| 0, &|_| {}),
        };
        let recordings = self.set.recordings.iter().zip(reports).map(join).collect();
        SetVerification::new(self.set, recordings, self)
    }

    /// Recovers the set, as [`recover_set`](keepup_recording::set::recover_set).
    pub fn recover(&mut self, without_locks: bool) -> SetRecovery {
        let reports =
            self.reports(&SetTask::Recover { without_locks }, |found: &SetMemberRecovery| &found.member);
        let join = |(entry, report): (&SetRecording, Report<SetMemberRecovery>)| match report {
            Ok(Answer { found, .. }) => found,
            Err(why) => recover_member(&not_here(entry, why), RecoverOptions::default(), &mut |_| {}),
        };
        SetRecovery::new(self.set, self.set.recordings.iter().zip(reports).map(join).collect())
    }

    /// One report for each recording of the set. Entries without directories have no recording.
    fn reports<T: DeserializeOwned>(
        &mut self,
        task: &SetTask,
        member: fn(&T) -> &MemberState,
    ) -> Vec<Report<T>> {
        let set = self.set;
        let entries = &set.recordings;
        let asked = entries.iter().filter(|entry| !entry.directories.is_empty());
        let tasks = asked.map(|entry| (entry.host.as_str(), task.clone())).collect();
        let mut answers = self.ask::<Answer<T>>(tasks);
        let mut taken: BTreeSet<Id> = entries.iter().filter_map(|entry| entry.id).collect();
        let mut report = |entry: &SetRecording| {
            let answer =
                answers.remove(&entry.host).unwrap_or_else(|| Err("it has no directories".into()))?;
            check(entry, member(&answer.found), answer.facts.as_ref(), &mut taken).map(|()| answer)
        };
        entries.iter().map(&mut report).collect()
    }

    /// Executes tasks on hosts and collects all parts of their answers.
    fn ask<T: DeserializeOwned>(
        &mut self,
        tasks: BTreeMap<&str, SetTask>,
    ) -> BTreeMap<String, Result<T, String>> {
        let mut answers = BTreeMap::new();
        let mut plans: BTreeMap<String, Result<SetPlan, String>> = BTreeMap::new();
        for (host, task) in tasks {
            let entry = self.set.recordings.iter().find(|entry| entry.host == host);
            let plan = entry.ok_or_else(|| "the set has no such host".to_owned());
            plans.insert(host.to_owned(), plan.and_then(|entry| SetPlan::new(self.set, entry, task)));
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
                        let answer = decode(&received.remove(&host).unwrap_or_default());
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
        let tasks = requests.iter().map(|(host, requests)| (*host, SetTask::digest(requests))).collect();
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

fn decode<T: DeserializeOwned>(reply: &Reply) -> Result<T, String> {
    let text = reply.text().map_err(|error| error.to_string())?;
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

/// Checks that a report is about the recording of `entry`, and that no other host has the recording.
fn check(
    entry: &SetRecording,
    member: &MemberState,
    facts: Option<&Result<RecordingFacts, String>>,
    taken: &mut BTreeSet<Id>,
) -> Result<(), String> {
    let SetRecording { host, id, end, why, .. } = entry;
    let is_of_entry = (&member.host, member.end, &member.why) == (host, *end, why);
    if !is_of_entry || (member.is_absent() && *end != SetEnd::Absent) {
        return Err("its report is not about this recording".to_owned());
    }
    let Some(Ok(facts)) = facts else { return Ok(()) };
    let is_its_own = id.map_or_else(|| taken.insert(facts.recording), |id| id == facts.recording);
    match is_its_own {
        true => Ok(()),
        false => Err(format!("{} has another recording", facts.directory.display())),
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
