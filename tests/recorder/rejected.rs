//! Data that arrived and are not recorded: everything that knows of a recording says so.
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use keepup_stream::wire::{ControlMessage as _, FrameKind, Hello, StreamInfo};
use keepup_testkit::{Program, Run};
use serde_json::{Value, json as value};

use super::captures::File;
use super::raw_client::{acked, answer, connect, event, frame, hello, streams};
use crate::common::{directory, json, keepup, recorder, squeezed};

/// Bytes of a record's header in a capture file.
const RECORD: usize = 16;
/// Captured bytes of a packet that was cut.
const CUT: usize = 40;

/// A capture of packets with these numbers, followed by `cut` packets that were captured only in part.
fn capture(numbers: impl Iterator<Item = u64>, cut: u64) -> File {
    let mut file = File::new();
    numbers.for_each(|number| file.add(1, number, number, 200));
    for number in 1000..1000 + cut {
        let start = file.0.len();
        file.add(1, number, number, 200);
        file.0.truncate(start + RECORD + CUT);
        file.0[start + 8..start + 12].copy_from_slice(&(CUT as u32).to_le_bytes());
    }
    file
}

fn record(here: &Path, file: &File, name: &str) -> Run {
    std::fs::create_dir_all(here.join("a")).unwrap();
    file.write(here, "a.pcap");
    let source = ["--from", "pcap:a.pcap"];
    let settings = ["--name", name, "--json", "--volume", "a", "--pool", "64 MiB", "--segment", "32 MiB"];
    keepup(here, &[&["record"], &source[..], &settings].concat())
}

fn cut_packets(count: u64) -> Value {
    value!([{
        "source": "pcap:a.pcap", "reason": "incomplete", "unit": "packet", "count": count,
        "detail": "captured only in part",
    }])
}

#[test]
fn rejected_packets_stand_in_the_report_the_journal_and_the_exit_code() {
    let directory = directory();
    let here = directory.path();
    let whole = record(here, &capture(0..20, 0), "whole");
    assert_eq!(whole.code(), 0, "{whole:#?}");
    assert_eq!((&json(&whole)["whole"], &json(&whole)["rejected"]), (&value!(true), &value!([])));
    assert!(!whole.stderr.contains("not recorded"), "{whole:#?}");
    let run = record(here, &capture(0..20, 3), "run");
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert_eq!((&account["whole"], &account["rejected"]), (&value!(false), &cut_packets(3)));
    assert_eq!(account["missing_events"], value!({}));
    let line = "pcap:a.pcap: 3 packets not recorded (incomplete): captured only in part";
    assert!(run.stderr.contains(&format!("warning: {line}")), "{run:#?}");
    for (name, rejected, code) in [("a/whole", value!([]), 0), ("a/run", cut_packets(3), 1)] {
        let verified = keepup(here, &["verify", name, "--json"]);
        assert_eq!((verified.code(), &json(&verified)["rejected"]), (code, &rejected), "{verified:#?}");
        assert_eq!(json(&verified)["fault_count"], 0);
        let info = json(&keepup(here, &["info", name, "--json"]));
        assert_eq!(info["rejected"], rejected, "{info:#}");
    }
    for verb in ["verify", "info"] {
        let shown = keepup(here, &[verb, "a/run"]).stdout;
        assert!(squeezed(&shown).contains(&format!("REJECTED {line}")), "{shown}");
    }
}

#[test]
fn whole_is_false_if_an_event_is_missing() {
    let directory = directory();
    let here = directory.path();
    let run = record(here, &capture((0..20).filter(|number| *number != 7), 0), "run");
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert_eq!((&account["whole"], &account["rejected"]), (&value!(false), &value!([])));
    assert_eq!(account["missing_events"], value!({"sequence_gap": 1}));
}

#[test]
fn a_recording_of_nothing_but_rejected_data_is_not_a_success() {
    let directory = directory();
    let here = directory.path();
    let run = record(here, &capture(0..0, 5), "run");
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert_eq!((&account["whole"], &account["removed"]), (&value!(false), &value!(false)));
    assert_eq!(account["rejected"], cut_packets(5));
    assert_eq!(json(&keepup(here, &["verify", "a/run", "--json"]))["rejected"], cut_packets(5));
}

/// A client whose stream 1 has events of 4 bytes, and has sent three of them.
fn client(to: SocketAddr) -> TcpStream {
    let mut client = connect(to);
    let stream = StreamInfo { shape: vec![4], ..streams(&[1]).remove(0) };
    client.write_all(&Hello::new("test", vec![stream]).to_frame().unwrap()).unwrap();
    (0..3).for_each(|sequence| client.write_all(&event(1, sequence, b"four")).unwrap());
    acked(&mut client, 3);
    client
}

/// Ends the recorder, and returns its run and its report.
fn stopped(record: Program) -> (Run, Value) {
    record.signal("TERM");
    let run = record.wait();
    let account = json(&run);
    (run, account)
}

#[test]
fn an_event_that_contradicts_its_stream_is_rejected() {
    for (wrong, reason) in [
        (None, ""),
        (Some(event(1, 3, b"fives")), "contradictory"),
        (Some(event(1, 2, b"four")), "late"),
        (Some(event(7, 0, b"four")), "contradictory"),
        (Some(vec![0x55; 64]), "malformed"),
    ] {
        let directory = directory();
        let here = directory.path();
        let mut record = recorder(here, &["disk"], &[]);
        let mut client = client(record.address());
        let source = client.local_addr().unwrap().to_string();
        if let Some(wrong) = &wrong {
            client.write_all(wrong).unwrap();
            answer(&mut client, FrameKind::Error);
            record.line_that(|line| line.contains("not recorded"), "a warning before the end");
        }
        drop(client);
        let (run, account) = stopped(record);
        assert_eq!(run.code(), i32::from(wrong.is_some()), "{run:#?}");
        assert_eq!(account["whole"], wrong.is_none(), "{account:#}");
        assert_eq!((&account["durable"]["events"], &account["missing_events"]), (&value!(3), &value!({})));
        let rows = account["rejected"].as_array().unwrap();
        assert_eq!(rows.len(), usize::from(wrong.is_some()), "{account:#}");
        for row in rows {
            assert_eq!((&row["source"], &row["reason"]), (&value!(source), &value!(reason)), "{row:#}");
            assert_eq!((&row["unit"], &row["count"]), (&value!("message"), &value!(1)), "{row:#}");
        }
        let verified = keepup(here, &["verify", "disk/run", "--json"]);
        assert_eq!(verified.code(), run.code(), "{verified:#?}");
        assert_eq!(json(&verified)["rejected"], account["rejected"]);
    }
}

#[test]
fn strangers_change_the_exit_code_only_if_nothing_else_was_recorded() {
    for has_client in [true, false] {
        let directory = directory();
        let here = directory.path();
        let mut record = recorder(here, &["disk"], &[]);
        let to = record.address();
        let client = has_client.then(|| client(to));
        let mut stranger = connect(to);
        stranger.write_all(&[0x55; 64]).unwrap();
        while frame(&mut stranger).is_some() {}
        record.line_that(|line| line.contains("not recorded (malformed)"), "a warning");
        drop((client, stranger));
        let (run, account) = stopped(record);
        assert_eq!(run.code(), i32::from(!has_client), "{run:#?}");
        assert_eq!((&account["whole"], &account["removed"]), (&value!(has_client), &value!(false)));
        let row = &account["rejected"][0];
        assert_eq!((&row["reason"], &row["is_foreign"]), (&value!("malformed"), &value!(true)), "{row:#}");
        let verified = keepup(here, &["verify", "disk/run", "--json"]);
        assert_eq!(verified.code(), run.code(), "{verified:#?}");
    }
}

#[test]
fn an_event_that_arrived_only_in_part_is_missing_unless_it_comes_again() {
    for comes_again in [false, true] {
        let directory = directory();
        let here = directory.path();
        let mut record = recorder(here, &["disk"], &[]);
        let to = record.address();
        let mut first = connect(to);
        let large = [7; 300_000];
        first.write_all(&[hello(&[1]), event(1, 0, &large)].concat()).unwrap();
        acked(&mut first, 1);
        first.write_all(&event(1, 1, &large)[..150_000]).unwrap();
        drop(first);
        // Welcome once everything of the first connection has been read.
        let mut second = loop {
            let mut second = connect(to);
            second.write_all(&hello(&[1])).unwrap();
            match frame(&mut second) {
                Some((header, _)) if header.kind == FrameKind::Welcome => break second,
                _ => {}
            }
        };
        if comes_again {
            second.write_all(&event(1, 1, &large)).unwrap();
            acked(&mut second, 2);
        }
        drop(second);
        let (run, account) = stopped(record);
        assert_eq!(run.code(), i32::from(!comes_again), "{run:#?}");
        let missing = if comes_again { value!({}) } else { value!({"connection_lost": 1}) };
        assert_eq!((&account["missing_events"], &account["whole"]), (&missing, &value!(comes_again)));
        let verified = json(&keepup(here, &["verify", "disk/run", "--json"]));
        assert_eq!(verified["fault_count"], 0, "{verified:#}");
        assert_eq!(verified["streams"]["1"]["lost_events"], u64::from(!comes_again), "{verified:#}");
    }
}
