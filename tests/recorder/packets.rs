//! Packets that detectors send over UDP, without waiting for a receiver.
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

use keepup_testkit::program::{Program, Run};

use crate::common::{count, directory, json, keepup, recorded, segments, start, verified};

const PACKET_BYTES: usize = 1024;

/// An address that is free now.
fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A sender of numbered packets.
struct Sender(UdpSocket);

impl Sender {
    fn to(address: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(address).unwrap();
        Self(socket)
    }

    fn name(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    fn send(&self, numbers: impl IntoIterator<Item = u64>) {
        numbers
            .into_iter()
            .for_each(|number| assert_eq!(self.0.send(&packet(number)).unwrap(), PACKET_BYTES));
    }
}

fn packet(number: u64) -> Vec<u8> {
    let mut packet = number.to_be_bytes().to_vec();
    packet.extend((8..PACKET_BYTES).map(|at| (at as u64 + 3 * number) as u8));
    packet
}

fn record(here: &Path, sources: &[String]) -> Program {
    std::fs::create_dir_all(here.join("a")).unwrap();
    let sources = sources.iter().flat_map(|source| ["--from", source]);
    let settings = ["--name", "run", "--json", "--volume", "a", "--pool", "64 MiB", "--segment", "32 MiB"];
    let mut program = start(here, &["record"].into_iter().chain(sources).chain(settings).collect::<Vec<_>>());
    program.line("writing with ");
    program
}

fn stop(program: Program) -> Run {
    program.signal("INT");
    program.wait()
}

/// Numbers of the recorded packets of a stream, each compared with what was sent.
fn numbers(here: &Path, name: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    for segment in segments(&here.join("a/run")) {
        let bytes = std::fs::read(segment).unwrap();
        for message in mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap) {
            if message.channel.topic == name {
                let number = u64::from_be_bytes(*message.data.first_chunk().unwrap());
                assert!(*message.data == packet(number), "packet {number} differs");
                numbers.push(number);
            }
        }
    }
    numbers
}

#[test]
fn packets_of_several_senders_are_recorded_in_order() {
    let directory = directory();
    let here = directory.path();
    let address = free_address();
    let program = record(here, &[format!("udp://{address}")]);
    let senders = [Sender::to(address), Sender::to(address)];
    // As many as the smallest usual receive buffer holds.
    senders[0].send(1000..1040);
    senders[1].send([7, 8, 10, 9, 11, 11, 9]);
    senders[0].send(1040..1060);
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    let sent = (65, 65 * PACKET_BYTES as u64);
    assert_eq!((count(&account["received"]), count(&account["durable"])), (sent, sent));
    assert_eq!(verified(here, "a/run"), sent);
    assert_eq!(numbers(here, &senders[0].name()), (1000..1060).collect::<Vec<_>>());
    assert_eq!(numbers(here, &senders[1].name()), [7, 8, 9, 10, 11]);
    let streams = &account["ledger"]["streams"];
    assert_eq!((count(&streams["0"]["sent"]).0, &account["trouble"]), (60, &serde_json::json!([])));
    let incidents = account["incidents"].to_string();
    assert!(incidents.contains("2 duplicate packets"), "{incidents}");
    let manifest = std::fs::read_to_string(here.join("a/run/keepup.json")).unwrap();
    assert!(manifest.contains(&format!("\"{}/first_counter\": \"1000\"", senders[0].name())), "{manifest}");
}

#[test]
fn strays_and_restarts_lose_no_packet_of_the_detector() {
    let directory = directory();
    let here = directory.path();
    let address = free_address();
    let program = record(here, &[format!("udp://{address}")]);
    for _ in 0..20 {
        assert_eq!(Sender::to(address).0.send(&[0; 40]).unwrap(), 40);
    }
    let sender = Sender::to(address);
    (0..3).for_each(|_| sender.send(0..12));
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    assert_eq!(count(&account["durable"]).0, 36);
    let [row] = &account["rejected"].as_array().unwrap()[..] else { panic!("{account:#}") };
    assert!(row["reason"] == "not_admitted" && row["count"] == 20 && row["is_foreign"] == true, "{row}");
    assert_eq!(numbers(here, &sender.name()), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].repeat(3));
}

#[test]
fn packets_that_arrive_before_the_ready_line_are_recorded() {
    let directory = directory();
    let here = directory.path();
    let address = free_address();
    std::fs::create_dir_all(here.join("a")).unwrap();
    let source = format!("udp://{address}");
    let settings = ["--name", "run", "--json", "--volume", "a", "--pool", "64 MiB", "--segment", "32 MiB"];
    let ready = ["record", "--from", &source, "--ready-file", "ready"];
    let mut program = start(here, &[&ready[..], &settings].concat());
    let sender = Sender::to(address);
    // Nobody listens before the socket is bound: the kernel says so.
    while sender.0.send(&packet(0)).is_err() || sender.0.send(&packet(0)).is_err() {
        std::thread::yield_now();
    }
    sender.send(1..8);
    program.line("writing with ");
    while !here.join("ready").exists() {
        std::thread::yield_now();
    }
    sender.send(8..10);
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(numbers(here, &sender.name()), (0..10).collect::<Vec<_>>());
}

#[test]
fn lost_packets_are_counted_where_they_were_lost() {
    let directory = directory();
    let here = directory.path();
    let address = free_address();
    let program = record(here, &[format!("udp://{address},buffer=32KiB")]);
    let sender = Sender::to(address);
    // Lost before they reached this machine.
    sender.send([0, 1, 5]);
    // The recorder cannot take packets while it is stopped.
    program.signal("STOP");
    sender.send(6..2000);
    program.signal("CONT");
    // Losses are known once a later packet has arrived.
    for number in 2000..2100 {
        std::thread::sleep(std::time::Duration::from_millis(1));
        sender.send([number]);
    }
    let run = stop(program);
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    let gaps = &account["ledger"]["streams"]["0"]["gap_events"];
    assert_eq!(gaps["sequence_gap"], 3, "{account:#}");
    let report = json(&keepup(here, &["verify", "a/run", "--json"]));
    assert_eq!(report["fault_count"], 0, "{report:#}");
    let numbers = numbers(here, &sender.name());
    assert_eq!(recorded(&report).0, numbers.len() as u64);
    let lost_here = gaps["socket_buffer"].as_u64().unwrap_or(0);
    assert!(lost_here > 1000, "{gaps}");
    assert_eq!(numbers.len() as u64 + 3 + lost_here, numbers.last().unwrap() + 1, "{gaps}");
}

#[test]
fn what_is_not_a_packet_of_the_detector_is_counted() {
    let directory = directory();
    let here = directory.path();
    let address = free_address();
    let program = record(here, &[format!("udp://{address},counter=u32le@1020,skip=1020,step=2")]);
    let sender = Sender::to(address);
    let send = |number: u32| {
        let packet = [vec![1; 1020], number.to_le_bytes().to_vec()].concat();
        sender.0.send(&packet).unwrap();
    };
    // The counter wraps around.
    (0..4u32).for_each(|at| send((u32::MAX - 3).wrapping_add(2 * at)));
    sender.0.send(b"hello").unwrap();
    send(5);
    let run = stop(program);
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert_eq!(count(&account["durable"]), (4, 16));
    let rejected = &account["rejected"][0];
    let why = (&rejected["reason"], &rejected["count"], &rejected["detail"]);
    let expected = ("malformed", 2, "5 bytes, at least 1024 expected");
    assert!(why.0 == expected.0 && why.1 == expected.1 && why.2 == expected.2, "{account:#}");
}

#[test]
fn threads_of_vdif_are_streams_and_concatenate_to_a_file() {
    let directory = directory();
    let here = directory.path();
    let address = free_address();
    let program = record(here, &[format!("vdif://{address},skip=8,frames-per-second=10")]);
    let sender = Sender::to(address);
    let mut expected = Vec::new();
    for number in 0..25u32 {
        for thread in 0..2u32 {
            let words = [100 + number / 10, 50 << 24 | (number % 10), 1 << 29 | 10, thread << 16 | 0x4566];
            let mut frame: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            frame.extend([number as u8; 64]);
            sender.0.send(&[&u64::from(number).to_le_bytes()[..], &frame].concat()).unwrap();
            if thread == 1 {
                expected.extend(frame);
            }
        }
    }
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(count(&json(&run)["durable"]), (50, 50 * 80));
    let listed = json(&keepup(here, &["verify", "a/run", "--json"]));
    assert_eq!(listed["streams"]["1"]["name"], "Ef-thread-1", "{listed:#}");
    let run = keepup(here, &["export", "a/run", "--to", "raw", "--out", "raw"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let files = std::fs::read_dir(here.join("raw")).unwrap().map(|entry| entry.unwrap().path());
    assert!(files.map(|path| std::fs::read(path).unwrap()).any(|bytes| bytes == expected));
}

#[test]
fn a_port_that_is_taken_is_refused() {
    let directory = directory();
    let here = directory.path();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let source = format!("udp://{}", taken.local_addr().unwrap());
    std::fs::create_dir_all(here.join("a")).unwrap();
    let run = keepup(here, &["record", "--volume", "a", "--from", &source]);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains(&format!("cannot receive packets at {source}")), "{run:#?}");
    assert!(std::fs::read_dir(here.join("a")).unwrap().next().is_none(), "nothing is left behind");
}

#[test]
fn simulated_packets_arrive_as_they_were_sent() {
    let directory = directory();
    let here = directory.path();
    let vdif = "frames-per-second=500";
    for (protocol, scheme, options, streams) in [("udp", "udp", "skip=8", "3"), ("vdif", "vdif", vdif, "4")] {
        let address = free_address();
        let program = record(here, &[format!("{scheme}://{address},{options}")]);
        let to = address.to_string();
        let connections = if protocol == "udp" { "3" } else { "2" };
        let mut arguments = vec!["source", "csl", "--as", protocol, "--to", &to, "--events", "60", "--json"];
        arguments.extend(["--event", "2000B", "--streams", streams, "--connections", connections]);
        arguments.extend(["--rate", "3000 /s", "--frames-per-second", "500"]);
        let source = keepup(here, &arguments);
        assert_eq!(source.code(), 0, "{source:#?}");
        assert!(json(&source)["durable"].is_null(), "{source:#?}");
        let run = stop(program);
        assert_eq!(run.code(), 0, "{run:#?}");
        let account = json(&run);
        assert_eq!(count(&account["durable"]), (60, 60 * 2000), "{protocol}");
        assert_eq!(account["ledger"]["streams"].as_object().unwrap().len().to_string(), streams);
        assert_eq!(verified(here, "a/run"), (60, 60 * 2000));
        std::fs::remove_dir_all(here.join("a/run")).unwrap();
    }
}

#[test]
fn simulated_heaps_arrive_until_all_senders_stop() {
    let directory = directory();
    let here = directory.path();
    let address = free_address();
    let program = record(here, &[format!("spead://{address},senders=2")]);
    let to = address.to_string();
    let arguments =
        ["source", "csl", "--as", "spead", "--to", &to, "--events", "20", "--event", "30 kB", "--json"];
    let source = keepup(here, &[&arguments[..], &["--streams", "2", "--rate", "200 /s"]].concat());
    assert_eq!(source.code(), 0, "{source:#?}");
    let run = program.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(count(&json(&run)["durable"]), (20, 20 * 30_000));
    assert_eq!(verified(here, "a/run"), (20, 20 * 30_000));
}

#[test]
fn several_sources_of_packets_are_one_recording() {
    let directory = directory();
    let here = directory.path();
    let addresses = [(); 3].map(|()| free_address());
    let program = record(here, &addresses.map(|address| format!("udp://{address},buffer=1MiB")));
    // Two senders at once: their streams are declared one after the other, wherever the source is served.
    let senders = addresses.map(|address| [Sender::to(address), Sender::to(address)]);
    // More packets than the buffers hold: the sockets must be read all the time.
    for number in 0..1000 {
        senders.iter().flatten().for_each(|sender| sender.send([number]));
        // A pause at first: what is read only while packets keep coming is not read any more.
        std::thread::sleep(std::time::Duration::from_millis(if number == 0 { 200 } else { 1 }));
    }
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(count(&json(&run)["durable"]).0, 6000);
    for (address, [first, second]) in addresses.iter().zip(&senders) {
        for sender in [first, second] {
            let name = format!("{address}-{}", sender.name());
            assert_eq!(numbers(here, &name), (0..1000).collect::<Vec<_>>(), "{name}");
        }
    }
}

#[test]
fn a_trial_sends_packets() {
    let directory = directory();
    let here = directory.path();
    for protocol in ["udp", "spead"] {
        let trial =
            ["trial", "csl", "--as", protocol, "--streams", "2", "--event", "8024B", "--rate", "5 MB/s"];
        let run = keepup(here, &[&trial[..], &["--time", "1s", "--to-null", "--json"]].concat());
        assert_eq!(run.code(), 0, "{run:#?}");
        let result = json(&run);
        let ledger = &result["runs"][0]["ledger"];
        assert_eq!(ledger["sent"], ledger["durable"], "{ledger}");
        assert!(ledger["sent"]["events"].as_u64().unwrap() > 500, "{ledger}");
    }
}

/// Packet `part` of the two of a SPEAD-64-48 heap, whose payload has 64 bytes `heap`.
fn half_of_heap(heap: u64, part: u64) -> Vec<u8> {
    let pointer = |id: u64, value: u64| 1 << 63 | id << 48 | value;
    let numbers = [(1, heap), (2, 64), (3, 32 * part), (4, 32)].map(|(id, value)| pointer(id, value));
    let words = [&[0x5304_0206_0000_0004], &numbers[..]].concat();
    let mut packet: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    packet.extend([heap as u8; 32]);
    packet
}

#[test]
fn heaps_are_assembled_until_their_sender_stops() {
    let directory = directory();
    let here = directory.path();
    let address = free_address();
    let program = record(here, &[format!("spead://{address}")]);
    let sender = Sender::to(address);
    // The heap of a stop has a null item of one byte.
    let stop = |heap| {
        let mut stop = half_of_heap(heap, 0);
        stop[16..24].copy_from_slice(&(1 << 63 | 2 << 48 | 1u64).to_be_bytes());
        stop[32..40].copy_from_slice(&(1 << 63 | 4 << 48 | 1u64).to_be_bytes());
        stop.splice(40..40, (1u64 << 63 | 6 << 48 | 2).to_be_bytes());
        stop[7] = 5;
        sender.0.send(&stop).unwrap();
    };
    // That of the observation before ends nothing.
    stop(900);
    // Heap 5 lacks a packet, heaps 7 and 8 are sent at once, heap 9 is lost at the end.
    let mut packets: Vec<_> = [(4, 0), (4, 1), (5, 0)].into();
    packets.extend([(6, 1), (6, 0), (7, 0), (8, 0), (7, 1), (8, 1)]);
    packets
        .into_iter()
        .for_each(|(heap, part)| assert_eq!(sender.0.send(&half_of_heap(heap, part)).unwrap(), 72));
    stop(10);
    // The recording ends by itself.
    let run = program.wait();
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert_eq!(count(&account["durable"]), (4, 4 * 64));
    assert_eq!(account["missing_events"], serde_json::json!({"sequence_gap": 2}), "{account:#}");
    let rejected = &account["rejected"][0];
    assert!(rejected["reason"] == "incomplete" && rejected["unit"] == "heap", "{account:#}");
    let run = keepup(here, &["export", "a/run", "--to", "raw", "--out", "raw"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let file = here.join("raw").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let raw = file.map(|path| std::fs::read(path).unwrap()).find(|bytes| bytes.len() == 256).unwrap();
    assert_eq!(raw, [4u8, 6, 7, 8].map(|heap| [heap; 64]).concat());
}

#[test]
fn packets_are_grouped_into_events() {
    let directory = directory();
    let here = directory.path();
    let address = free_address();
    let program = record(here, &[format!("udp://{address},group=4")]);
    let sender = Sender::to(address);
    // Packet 13 is lost, 8 and 9 arrive the other way round.
    sender.send((0..8).chain([9, 8, 10, 11, 12]).chain(14..21));
    let run = stop(program);
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert_eq!(count(&account["durable"]), (4, 16 * PACKET_BYTES as u64));
    assert_eq!(account["missing_events"], serde_json::json!({"sequence_gap": 1}), "{account:#}");
    let rejected = &account["rejected"][0];
    assert!(rejected["reason"] == "incomplete" && rejected["count"] == 4, "{account:#}");
    assert_eq!(json(&keepup(here, &["verify", "a/run", "--json"]))["fault_count"], 0);
    let mut found = Vec::new();
    for segment in segments(&here.join("a/run")) {
        let bytes = std::fs::read(segment).unwrap();
        let messages =
            mcap::MessageStream::new(&bytes).unwrap().map(|message| message.unwrap().data.to_vec());
        found.extend(messages.flatten());
    }
    let sent = (0..12).chain(16..20).flat_map(packet).collect::<Vec<_>>();
    assert!(found == sent, "{} bytes, {} expected", found.len(), sent.len());
}

#[test]
#[ignore = "system"]
fn other_interfaces_with_the_same_group_are_not_heard() {
    let test = "other_interfaces_with_the_same_group_are_not_heard";
    if !keepup_testkit::root::allowed(test) {
        return;
    }
    let cable = match keepup_testkit::cable::Cable::lay(&format!("kp{}", std::process::id())) {
        Ok(cable) => cable,
        Err(why) => return keepup_testkit::root::skip(test, &why),
    };
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir_all(here.join("a")).unwrap();
    let run_at = |end: usize, program: &str, arguments: &[&str]| {
        Program::start("ip", &[&cable.at(end)[1..], &[program], arguments].concat(), here)
    };
    for arguments in [
        ["address", "add", "fd77::1/64", "dev", "cable", "nodad"].as_slice(),
        &["route", "add", "224.0.0.0/4", "dev", "cable"],
    ] {
        assert_eq!(run_at(1, "ip", arguments).wait().code(), 0, "{arguments:?}");
    }
    let keepup = env!("CARGO_BIN_EXE_keepup");
    // Two recorders join the group on different interfaces of one machine, and the sender uses one of them.
    for (at, group) in ["239.77.1.2:4001", "[ff05::77]:4001"].into_iter().enumerate() {
        let recorders = ["cable", "lo"].map(|interface| {
            let (name, source) = (format!("{interface}{at}"), format!("udp://{group},interface={interface}"));
            let settings = ["record", "--from", &source, "--volume", "a", "--name", &name, "--json"];
            let mut program = run_at(0, keepup, &settings);
            program.line("writing with ");
            program
        });
        let sent = ["source", "csl", "--as", "udp", "--to", group, "--streams", "1", "--connections", "1"];
        let sent = run_at(1, keepup, &[&sent[..], &["--events", "20", "--event", "1000B"]].concat()).wait();
        assert_eq!(sent.code(), 0, "{sent:#?}");
        let [heard, other] = recorders.map(|program| count(&json(&stop(program))["durable"]).0);
        assert_eq!((heard, other), (20, 0), "{group}");
    }
}
