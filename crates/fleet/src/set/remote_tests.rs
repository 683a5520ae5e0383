//! Agents and local paths give the same result, also for damaged, missing and different recordings.
use std::fs;
use std::path::Path;
use std::time::Duration;

use keepup_recording::fixture::scene_stream;
use keepup_recording::journal::JournalRecord;
use keepup_recording::layout::segment_file_name;
use keepup_recording::set::{describe_set, recover_set, verify_set};
use keepup_stream::ledger::{Gap, LossCause};
use keepup_stream::wire::StreamInfo;
use serde_json::Value;

use super::super::host::pack;
use super::super::testing::{Agents, Site, TestRecording, id, payload};
use super::*;

/// `daq0` has events 0 to 30 and was cut off; `daq1` continues from 20 with the same events, except for
/// those in `different`, to 60.
fn site(different: &'static [u64]) -> Site {
    Site::new(2, |host, volume| {
        let mut recording = TestRecording::create(volume, host);
        match host {
            0 => {
                (0..3).for_each(|block| recording.block(block * 10..block * 10 + 10, payload));
                recording.cut_off()
            }
            _ => {
                let start = JournalRecord::Start { stream: scene_stream().id, first_sequence: 20 };
                recording.journal.append(&start).unwrap();
                let other = |sequence: u64| {
                    let mut bytes = payload(sequence);
                    bytes[0] ^= u8::from(different.contains(&sequence));
                    bytes
                };
                recording.block(20..37, other);
                recording.block(37..60, other);
                recording.end()
            }
        }
    })
}

/// JSON without durations.
fn timeless(report: &impl serde::Serialize) -> Value {
    let mut value = serde_json::to_value(report).unwrap();
    for recording in value["recordings"].as_array_mut().unwrap() {
        recording.as_object_mut().unwrap().remove("seconds");
    }
    value
}

/// Compares info and verify of agents and local paths; returns those of the agents.
fn compared(site: &Site) -> (SetInfo, SetVerification) {
    let (open, mut agents) = (site.open(), site.agents());
    let mut remote = RemoteSet::new(&site.set, &mut agents);
    let (info, report) = (remote.describe(true), remote.verify(Some(2)));
    assert_eq!(timeless(&info), timeless(&describe_set(&open, true)));
    let local = verify_set(&open, VerifyOptions { threads: 1 }, &|| 0, &|_| {});
    assert_eq!(timeless(&report), timeless(&local));
    (info, report)
}

/// Recovers until no lock is held: a child process of another test may have one for a moment. Returns the
/// first report of each recording.
fn until_free(mut recover: impl FnMut() -> SetRecovery) -> SetRecovery {
    let mut all = recover();
    for _ in 0..1000 {
        if all.recordings.iter().all(|found| found.member.problem.is_none()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        let again = recover();
        for (known, new) in all.recordings.iter_mut().zip(again.recordings) {
            let report = known.report.take();
            *known = SetMemberRecovery { report: report.or(new.report), ..new };
        }
        all.complete = again.complete;
    }
    all
}

/// Recovers with agents.
fn recover(site: &Site) -> SetRecovery {
    let mut agents = site.agents();
    until_free(|| RemoteSet::new(&site.set, &mut agents).recover(false))
}

#[test]
fn a_cut_off_recording_is_recovered_where_it_is() {
    let site = site(&[]);
    let (info, report) = compared(&site);
    assert_eq!(info.account.streams[&3].duplicates, 10);
    assert!(report.recordings[0].report.is_some(), "{report:#?}");
    let other = self::site(&[]);
    let sealed = site.set.recordings[1].directories[0].join(segment_file_name(0));
    let before = fs::read(&sealed).unwrap();
    let recovered = recover(&site);
    assert!(recovered.complete && recovered.recordings[0].report.is_some(), "{recovered:#?}");
    assert_eq!(fs::read(&sealed).unwrap(), before);
    // The same site, recovered with local paths.
    let local = until_free(|| recover_set(&other.open(), RecoverOptions::default(), &mut |_| {}));
    let text = serde_json::to_string(&local).unwrap();
    let [here, there] = [&site, &other].map(|site| site.root.path().canonicalize().unwrap());
    let text = text.replace(&there.display().to_string(), &here.display().to_string());
    // `daq1` has no NeXus master, because the test made it; recovery adds one.
    assert_eq!(serde_json::to_value(&recovered).unwrap(), serde_json::from_str::<Value>(&text).unwrap());
    let again = recover(&site);
    assert!(again.complete && again.recordings.iter().all(|found| found.report.is_none()), "{again:#?}");
    let (_, report) = compared(&site);
    let stream = &report.account.streams[&3];
    assert!(report.whole, "{report:#?}");
    assert_eq!((stream.events, stream.duplicates, stream.different), (60, 10, Some(0)));
}

#[test]
fn different_duplicates_are_found_through_agents() {
    let site = site(&[22, 29, 45]);
    recover(&site);
    let (_, report) = compared(&site);
    assert_eq!(report.account.streams[&3].different, Some(2));
    assert_eq!(report.account.faults, ["stream 3: 2 duplicates have another payload, the first is event 22"]);
}

#[test]
fn damage_is_reported_as_with_local_paths() {
    let site = site(&[]);
    recover(&site);
    let segment = site.set.recordings[0].directories[0].join(segment_file_name(0));
    let mut bytes = fs::read(&segment).unwrap();
    // The last event of the third block, which is a duplicate.
    let at = (0..bytes.len()).rev().find(|at| bytes[*at..].starts_with(&payload(29))).unwrap();
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let (_, report) = compared(&site);
    assert!(report.recordings[0].report.as_ref().unwrap().fault_count > 0);
    let fault = &report.account.faults[0];
    assert!(fault.starts_with("cannot compare the duplicates of stream 3: "), "{fault}");
}

#[test]
fn a_recording_that_is_gone_is_not_here() {
    let site = site(&[]);
    fs::remove_dir_all(&site.set.recordings[1].directories[0]).unwrap();
    let (_, report) = compared(&site);
    assert_eq!(report.account.incomplete_hosts, ["daq1"]);
    let problem = report.recordings[1].member.problem.as_ref().unwrap();
    assert!(problem.starts_with("no recording in "), "{problem}");
}

#[test]
fn the_recording_of_a_lost_host_is_not_here() {
    let site = site(&[]);
    recover(&site);
    for last in [0, 1] {
        let mut agents = site.agents();
        agents.lost_after.insert("daq0".into(), last);
        let report = RemoteSet::new(&site.set, &mut agents).verify(None);
        assert!(!report.whole);
        match last {
            // It is lost before it reports.
            0 => {
                let lost = &report.recordings[0].member;
                assert_eq!((lost.is_here, lost.problem.as_deref()), (false, Some("the host was lost")));
                assert_eq!(report.account.incomplete_hosts, ["daq0"]);
                assert!(report.account.faults.is_empty(), "{report:#?}");
            }
            // It is lost before duplicates are compared.
            _ => assert_eq!(
                report.account.faults,
                ["cannot compare the duplicates of stream 3: host daq0: the host was lost"]
            ),
        }
    }
}

#[test]
fn a_report_about_another_recording_is_refused() {
    struct Swapped(Agents);
    impl Hosts for Swapped {
        fn run(&mut self, plans: &BTreeMap<String, String>) -> BTreeMap<String, Result<String, String>> {
            let mut found = (&mut self.0).run(plans);
            let (first, second) = (found.remove("daq0").unwrap(), found.remove("daq1").unwrap());
            [("daq0".to_owned(), second), ("daq1".to_owned(), first)].into()
        }
    }
    let site = site(&[]);
    let report = RemoteSet::new(&site.set, Swapped(site.agents())).describe(false);
    for found in &report.recordings {
        assert_eq!(found.member.problem.as_deref(), Some("its report is not about this recording"));
    }
    assert!(report.account.streams.is_empty());
}

/// Changes the answer of each host.
struct Changed(Agents, fn(&mut Value));

impl Hosts for Changed {
    fn run(&mut self, plans: &BTreeMap<String, String>) -> BTreeMap<String, Result<String, String>> {
        let change = |(host, outcome): (String, Result<String, String>)| {
            let mut reply = Reply::default();
            assert_eq!(reply.add(&outcome.unwrap()).unwrap(), None);
            let mut answer = serde_json::from_str(&reply.text().unwrap()).unwrap();
            (self.1)(&mut answer);
            (host, Ok(pack(&answer).unwrap().part(0).unwrap()))
        };
        (&mut self.0).run(plans).into_iter().map(change).collect()
    }
}

#[test]
fn reports_without_facts_or_about_two_recordings_are_refused() {
    let site = site(&[]);
    let remote = |change: fn(&mut Value)| RemoteSet::new(&site.set, Changed(site.agents(), change));
    type Change = fn(&mut Value);
    let changes: [(Change, &str); 3] = [
        (|answer| answer["facts"] = Value::Null, "malformed answer: it does not describe the recording"),
        (|answer| answer["identity"] = Value::Null, "malformed answer: it does not describe the recording"),
        (
            |answer| answer["identity"]["recording"] = id(7).to_string().into(),
            "its report is not about this recording",
        ),
    ];
    for (change, why) in changes {
        let (info, report) = (remote(change).describe(false), remote(change).verify(Some(1)));
        assert_eq!(info.recordings[0].member.problem.as_deref(), Some(why));
        assert_eq!(report.recordings[1].member.problem.as_deref(), Some(why));
        assert_eq!(report.account.incomplete_hosts, ["daq0", "daq1"]);
    }
    let recovered =
        remote(|answer| answer["identity"]["recording"] = id(7).to_string().into()).recover(false);
    let problem = recovered.recordings[0].member.problem.as_ref().unwrap();
    assert!(problem.ends_with("has another recording"), "{problem}");
}

#[test]
fn an_answer_with_more_digests_than_requested_is_refused() {
    let request = DigestRequest { stream: 3, start: 0, end: 2, step: 1 };
    let more: fn(&mut Value) = |answer| answer[0]["Ok"] = vec![answer[0]["Ok"][0].clone(); 1_000].into();
    let site = site(&[]);
    let mut remote = RemoteSet::new(&site.set, Changed(site.agents(), more));
    let found = remote.digests(&[("daq0", vec![request])].into());
    let why = found["daq0"][0].as_ref().unwrap_err();
    assert!(why.starts_with("host daq0: malformed answer: more than "), "{why}");
    let mut agents = site.agents();
    let found = RemoteSet::new(&site.set, &mut agents).digests(&[("daq0", vec![request])].into());
    assert_eq!(found["daq0"][0].as_ref().unwrap().len(), 2);
}

#[test]
fn a_missing_volume_does_not_hide_the_recording_on_another() {
    let place = tempfile::tempdir().unwrap();
    let disk = place.path().canonicalize().unwrap().join("disk1");
    fs::create_dir(&disk).unwrap();
    let mut site = Site::new(1, |host, volume| {
        let volumes = [volume.to_owned(), disk.clone()];
        let [first, _] = [0, 1].map(|index| {
            let mut recording = TestRecording::create_on(&volumes, index, host);
            recording.block(u64::from(index) * 3..u64::from(index) * 3 + 3, payload);
            recording.cut_off()
        });
        first
    });
    site.set.recordings[0].directories.push(disk.join("run-7"));
    site.second_volume = Some(disk.clone());
    assert!(compared(&site).0.recordings[0].member.problem.is_none());
    fs::rename(&disk, disk.with_extension("gone")).unwrap();
    let (info, _) = compared(&site);
    let found = &info.recordings[0];
    assert_eq!(found.member.problem, Some(format!("volume not found: {}", disk.display())));
    assert!(found.member.is_here && found.info.is_some());
}

/// Hosts that reach the same recording, and do not know its identity.
fn shared(make: fn(TestRecording) -> std::path::PathBuf) -> Site {
    let mut site = Site::new(2, |_, volume| {
        let mut recording = TestRecording::create(volume, 5);
        recording.block(0..3, payload);
        make(recording)
    });
    site.set.recordings.iter_mut().for_each(|entry| entry.id = None);
    site
}

#[test]
fn a_recording_without_identity_is_recovered_by_one_host() {
    let site = shared(TestRecording::cut_off);
    let mut agents = site.agents();
    let found = RemoteSet::new(&site.set, &mut agents).recover(false);
    let [first, second] = [0, 1].map(|host: usize| &found.recordings[host]);
    assert!(first.member.is_here && second.report.is_none(), "{found:#?}");
    assert!(second.member.problem.as_ref().unwrap().ends_with("has another recording"), "{second:?}");
    let asked: Vec<Vec<&str>> =
        agents.asked.iter().map(|hosts| hosts.iter().map(String::as_str).collect()).collect();
    assert_eq!(asked, [vec!["daq0", "daq1"], vec!["daq0"]], "both are described, one is recovered");
}

#[test]
fn a_recording_without_identity_belongs_to_one_host() {
    let site = shared(TestRecording::end);
    let mut agents = site.agents();
    let report = RemoteSet::new(&site.set, &mut agents).describe(false);
    assert_eq!(timeless(&report), timeless(&describe_set(&site.open(), false)));
    let [first, second] = [0, 1].map(|host: usize| &report.recordings[host].member);
    assert!(first.is_here && !second.is_here, "{report:#?}");
    assert!(second.problem.as_ref().unwrap().ends_with("has another recording"), "{second:?}");
}

#[test]
fn hosts_without_a_recording_are_not_asked() {
    let mut site = site(&[]);
    site.set.recordings.push(SetRecording {
        host: "daq2".into(),
        id: None,
        directories: Vec::new(),
        end: SetEnd::Absent,
        why: None,
    });
    let mut agents = site.agents_of(2);
    let report = RemoteSet::new(&site.set, &mut agents).describe(false);
    assert!(report.recordings[2].member.is_absent());
    assert!(agents.asked.iter().all(|hosts| !hosts.contains("daq2")));
}

/// Declares streams, each with an event that was lost.
fn with_streams(journal: &mut keepup_recording::journal::Journal, count: u32) {
    for stream in 100..100 + count {
        let info = StreamInfo { id: stream, name: format!("module {stream}"), ..scene_stream() };
        journal.append(&JournalRecord::Stream(info)).unwrap();
        let first_sequence = u64::from(stream).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 4;
        let gap = Gap { stream, first_sequence, events: 7, cause: LossCause::SequenceGap };
        journal.append(&JournalRecord::Gap(gap)).unwrap();
    }
}

/// Describes a recording with many streams; returns the number of runs and of bytes sent.
fn describe_many(streams: u32) -> (u64, usize) {
    let site = Site::new(1, |host, volume: &Path| {
        let mut recording = TestRecording::create(volume, host);
        with_streams(&mut recording.journal, streams);
        recording.block(0..3, payload);
        recording.end()
    });
    let mut agents = site.agents();
    let info = RemoteSet::new(&site.set, &mut agents).describe(false);
    assert_eq!(info.recordings[0].info.as_ref().unwrap().streams.len(), streams as usize + 1);
    assert_eq!(timeless(&info), timeless(&describe_set(&site.open(), false)));
    assert_eq!(info.recordings[0].facts.as_ref().unwrap().as_ref().unwrap().recording, id(0));
    (agents.runs, agents.bytes)
}

#[test]
fn an_account_of_many_streams_is_sent_in_parts() {
    let (runs, bytes) = describe_many(508);
    assert!(runs == 1 && bytes < 100_000, "{runs} {bytes}");
    // The most that a recording may have, with the stream of the test.
    let (runs, bytes) = describe_many(65_436);
    assert!((2..20).contains(&runs) && bytes < 10_000_000, "{runs} {bytes}");
}
