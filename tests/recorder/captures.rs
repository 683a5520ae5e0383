//! Packets from capture files.
use std::path::Path;
use std::time::{Duration, Instant};

use keepup_testkit::program::Run;

use crate::common::{count, directory, json, keepup, segments, start, verified};

/// Header of a pcap file with raw IP packets and times in ns.
const HEADER: [u32; 6] = [0xA1B2_3C4D, 0x0004_0002, 0, 0, 262_144, 101];
/// Time of the first packet, ns since the Unix epoch.
const START_NS: u64 = 1_700_000_000_000_000_000;

/// A capture file in the making.
pub(super) struct File(pub(super) Vec<u8>);

impl File {
    pub(super) fn new() -> Self {
        Self(HEADER.iter().flat_map(|number| number.to_le_bytes()).collect())
    }

    /// Adds a packet of a sender, a number 1 to 254, with a counter in front of its payload.
    pub(super) fn add(&mut self, sender: u8, number: u64, time_ns: u64, bytes: usize) {
        let mut payload = number.to_be_bytes().to_vec();
        payload.resize(bytes, number as u8);
        let mut packet = vec![0x45, 0];
        packet.extend((28 + bytes as u16).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, sender, 10, 0, 0, 255]);
        for field in [7000, 4001, 8 + bytes as u16, 0u16] {
            packet.extend(field.to_be_bytes());
        }
        packet.extend(payload);
        let (seconds, ns) = ((time_ns / 1_000_000_000) as u32, (time_ns % 1_000_000_000) as u32);
        let bytes = packet.len() as u32;
        self.0.extend([seconds, ns, bytes, bytes].iter().flat_map(|number| number.to_le_bytes()));
        self.0.extend(packet);
    }

    pub(super) fn write(&self, here: &Path, name: &str) {
        std::fs::write(here.join(name), &self.0).unwrap();
    }
}

fn arguments<'a>(sources: &[&'a str], pool: &'a str) -> Vec<&'a str> {
    let sources = sources.iter().flat_map(|source| ["--from", source]);
    let settings = ["--name", "run", "--json", "--volume", "a", "--pool", pool, "--segment", "32 MiB"];
    ["record"].into_iter().chain(sources).chain(settings).collect()
}

fn record(here: &Path, sources: &[&str]) -> Run {
    std::fs::create_dir_all(here.join("a")).unwrap();
    keepup(here, &arguments(sources, "64 MiB"))
}

/// Counter and time of the recorded packets of a stream.
fn recorded(here: &Path, name: &str) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for segment in segments(&here.join("a/run")) {
        let bytes = std::fs::read(segment).unwrap();
        for message in mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap) {
            if message.channel.topic == name {
                let number = u64::from_be_bytes(*message.data.first_chunk().unwrap());
                assert!(
                    message.data[8..].iter().all(|byte| *byte == number as u8),
                    "packet {number} differs"
                );
                found.push((number, message.log_time));
            }
        }
    }
    found
}

#[test]
fn a_file_is_recorded_as_if_its_packets_arrived() {
    let directory = directory();
    let here = directory.path();
    let mut file = File::new();
    let time_ns = |number: u64| START_NS + 1_000_000_007 * number;
    for number in [0, 1, 3, 2, 4, 7, 8] {
        file.add(1, 100 + number, time_ns(number), 600);
        file.add(2, number, time_ns(number), 40);
    }
    file.0.truncate(file.0.len() - 3);
    file.write(here, "night.pcap");
    let run = record(here, &["pcap:night.pcap,port=4001"]);
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert_eq!(count(&account["durable"]), (13, 7 * 600 + 6 * 40));
    assert_eq!(account["missing_events"], serde_json::json!({"sequence_gap": 4}), "{account:#}");
    let expected = serde_json::json!([{
        "source": "pcap:night.pcap,port=4001", "reason": "incomplete", "unit": "packet", "count": 1,
        "detail": "the file ends within a record",
    }]);
    assert_eq!(account["rejected"], expected, "{account:#}");
    assert_eq!(json(&keepup(here, &["verify", "a/run", "--json"]))["fault_count"], 0);
    let expected = [0, 1, 2, 3, 4, 7, 8].map(|number| (100 + number, time_ns(number)));
    assert_eq!(recorded(here, "10.0.0.1:7000"), expected);
    assert_eq!(recorded(here, "10.0.0.2:7000").len(), 6);
}

#[test]
fn a_file_may_have_any_path() {
    let directory = directory();
    let here = directory.path();
    let long = ["x".repeat(150), "y".repeat(150)].join("/");
    std::fs::create_dir_all(here.join(&long)).unwrap();
    let paths = [format!("{long}/a.pcap"), format!("{}.pcap", "z".repeat(240)), "a\tb,c.pcap".to_owned()];
    let mut addresses = Vec::new();
    for (sender, path) in (1..).zip(&paths) {
        let mut file = File::new();
        (0..3).for_each(|number| file.add(sender, number, START_NS + number, 40));
        file.write(here, path);
        addresses.push(format!("pcap:{},counter=u64be@0", path.replace(',', ",,")));
    }
    // One by one the address names the client, together also the streams.
    for sources in [&addresses[..1], &addresses[1..2], &addresses[2..], &addresses[..]] {
        let all: Vec<&str> = sources.iter().map(String::as_str).collect();
        let run = record(here, &all);
        assert_eq!(run.code(), 0, "{run:#?}");
        let packets = 3 * sources.len() as u64;
        assert_eq!(count(&json(&run)["durable"]), (packets, 40 * packets), "{run:#?}");
        std::fs::remove_dir_all(here.join("a/run")).unwrap();
    }
}

#[test]
fn nothing_of_a_file_is_lost_when_memory_is_short() {
    let directory = directory();
    let here = directory.path();
    let mut file = File::new();
    (0..30_000).for_each(|number| file.add(1, number, START_NS + number, 8000));
    file.write(here, "large.pcap");
    // 240 MB through 16 MiB, at a rate below that of the file.
    std::fs::create_dir_all(here.join("a")).unwrap();
    let run = keepup(here, &arguments(&["pcap:large.pcap"], "16 MiB"));
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(verified(here, "a/run"), (30_000, 30_000 * 8000));
}

#[test]
fn the_pace_of_a_file_is_kept_and_other_sources_are_served() {
    let directory = directory();
    let here = directory.path();
    let (mut slow, mut quick) = (File::new(), File::new());
    (0..11).for_each(|number| slow.add(1, number, START_NS + number * 100_000_000, 100));
    (0..5000).for_each(|number| quick.add(1, number, START_NS + number, 8000));
    slow.write(here, "slow.pcap");
    quick.write(here, "quick.pcap");
    let start = Instant::now();
    let run = record(here, &["pcap:slow.pcap,pace=original", "pcap:quick.pcap"]);
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(verified(here, "a/run").0, 5011);
    assert_eq!(recorded(here, "quick.pcap-10.0.0.1:7000").len(), 5000);
    let times = recorded(here, "slow.pcap-10.0.0.1:7000");
    assert_eq!(times, (0..11).map(|number| (number, START_NS + number * 100_000_000)).collect::<Vec<_>>());
}

#[test]
fn a_stop_before_the_end_of_a_file_is_reported() {
    let directory = directory();
    let here = directory.path();
    let mut file = File::new();
    // The second packet is an hour later.
    [0, 3600].into_iter().for_each(|second| file.add(1, second, START_NS + second * 1_000_000_000, 100));
    file.write(here, "long.pcap");
    std::fs::create_dir_all(here.join("a")).unwrap();
    let mut program = start(here, &arguments(&["pcap:long.pcap,pace=original,step=3600"], "64 MiB"));
    program.line("writing with ");
    program.signal("INT");
    let run = program.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    // The first packet may or may not have been taken.
    assert!(count(&account["durable"]).0 <= 1, "{account:#}");
    assert!(account["incidents"].to_string().contains("stopped before the end of the file"), "{account:#}");
}

#[test]
fn files_that_cannot_be_read_are_refused() {
    let directory = directory();
    let here = directory.path();
    std::fs::write(here.join("text"), "This is no capture.").unwrap();
    for (source, code, text) in [
        ("pcap:missing", 4, "cannot open capture file missing: No such file"),
        ("pcap:text", 2, "cannot record text: cannot read capture file: it is neither pcap nor pcapng"),
    ] {
        let run = record(here, &[source]);
        assert_eq!(run.code(), code, "{run:#?}");
        assert!(run.stderr.contains(text), "{run:#?}");
        assert!(std::fs::read_dir(here.join("a")).unwrap().next().is_none(), "nothing is left behind");
    }
    // A damaged record: what comes before is kept.
    let mut file = File::new();
    (0..5).for_each(|number| file.add(1, number, START_NS, 100));
    file.0.extend(vec![0xFF; 2 << 20]);
    file.write(here, "damaged");
    let run = record(here, &["pcap:damaged"]);
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert_eq!(count(&account["durable"]).0, 5);
    assert!(account["ended"].to_string().contains("cannot read capture file beyond byte"), "{account:#}");
    std::fs::remove_dir_all(here.join("a/run")).unwrap();
    // A file without packets.
    File::new().write(here, "empty");
    let run = record(here, &["pcap:empty"]);
    assert_eq!((run.code(), count(&json(&run)["durable"]).0), (0, 0), "{run:#?}");
}
