//! EPICS servers that the recorder monitors. The messages are written here from the description of pvAccess,
//! not by the recorder's decoder.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use keepup_testkit::program::{Program, Run};

use crate::common::{count, directory, get, json, keepup, recorded, segments, start, until, verified};

const PV: &str = "13SIM1:Pva1:Image";
const WIDTH: usize = 64;
const HEIGHT: usize = 48;
const IMAGE_BYTES: usize = WIDTH * HEIGHT * 2;
const SERVER_ID: u32 = 5;
/// 2026-11-26T08:00:00Z.
const SECONDS: u64 = 1_795_680_000;

/// Pixels of an image: every image differs from the others.
fn pixels(number: i32) -> Vec<u8> {
    (0..IMAGE_BYTES).map(|at| (at as i32 + 31 * number) as u8).collect()
}

fn size(size: usize) -> Vec<u8> {
    if size < 254 { vec![size as u8] } else { [&[254][..], &(size as u32).to_le_bytes()].concat() }
}

fn text(text: &str) -> Vec<u8> {
    [size(text.len()), text.as_bytes().to_vec()].concat()
}

/// Type of a structure.
fn structure(id: &str, fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let members = fields.iter().flat_map(|(name, field)| [text(name), field.clone()].concat());
    [vec![0x80], text(id), size(fields.len()), members.collect()].concat()
}

fn image_type() -> Vec<u8> {
    let (int, long) = (vec![0x22], vec![0x23]);
    let time = structure(
        "time_t",
        &[("secondsPastEpoch", long), ("nanoseconds", int.clone()), ("userTag", int.clone())],
    );
    let value = [vec![0x81], text(""), size(1), text("ushortValue"), vec![0x2D]].concat();
    let dimension = structure("dimension_t", &[("size", int.clone()), ("binning", int.clone())]);
    let attribute = structure("NTAttribute", &[("name", vec![0x60]), ("value", vec![0x82])]);
    structure(
        "epics:nt/NTNDArray:1.0",
        &[
            ("value", value),
            ("uniqueId", int),
            // The type gets a number, as older servers do it.
            ("dataTimeStamp", [vec![0xFD, 1, 0], time].concat()),
            ("dimension", [vec![0x88], dimension].concat()),
            ("attribute", [vec![0x88], attribute].concat()),
        ],
    )
}

/// A message of the server, in segments of at most `segment` bytes.
fn segmented(command: u8, body: &[u8], segment: usize) -> Vec<u8> {
    let chunks: Vec<&[u8]> = if body.is_empty() { vec![body] } else { body.chunks(segment).collect() };
    let last = chunks.len() - 1;
    let frames = chunks.iter().enumerate().map(|(index, chunk)| {
        let flags = match index {
            _ if last == 0 => 0x40,
            0 => 0x50,
            index if index == last => 0x60,
            _ => 0x70,
        };
        [&[0xCA, 2, flags, command][..], &(chunk.len() as u32).to_le_bytes(), chunk].concat()
    });
    frames.collect::<Vec<_>>().concat()
}

fn message(command: u8, body: &[u8]) -> Vec<u8> {
    segmented(command, body, usize::MAX)
}

/// A server, and the connection of the recorder.
struct Server {
    peer: TcpStream,
    /// Number of the monitor.
    id: u32,
}

impl Server {
    /// Accepts the recorder and serves it up to the start of the monitor.
    fn accept(listener: &TcpListener) -> Self {
        let (mut peer, _) = listener.accept().unwrap();
        peer.write_all(&[0xCA, 2, 0x41, 2, 0, 0, 0, 0]).unwrap();
        let offer = [&[0, 0, 1, 0, 0xFF, 0x7F][..], &size(2), &text("anonymous"), &text("ca")].concat();
        peer.write_all(&message(1, &offer)).unwrap();
        let mut server = Self { peer, id: 0 };
        let choice = server.request(1);
        assert!(choice.ends_with(&[text("anonymous"), vec![0xFF]].concat()), "{choice:?}");
        server.send(9, &[0xFF]);
        let create = server.request(7);
        assert_eq!((&create[..2], &create[6..]), (&[1, 0][..], &text(PV)[..]));
        server.id = u32::from_le_bytes(create[2..6].try_into().unwrap());
        server.send(7, &[&server.id.to_le_bytes()[..], &SERVER_ID.to_le_bytes(), &[0xFF]].concat());
        let init = server.request(13);
        assert_eq!((&init[..4], init[8]), (&SERVER_ID.to_le_bytes()[..], 0x88));
        server.send(13, &[server.head(0x08), vec![0xFF], image_type()].concat());
        let start = server.request(13);
        assert_eq!(start[8], 0x44);
        server
    }

    fn head(&self, subcommand: u8) -> Vec<u8> {
        [&self.id.to_le_bytes()[..], &[subcommand]].concat()
    }

    fn send(&mut self, command: u8, body: &[u8]) {
        self.peer.write_all(&message(command, body)).unwrap();
    }

    /// Body of the next message except echo requests; it has this command.
    fn request(&mut self, command: u8) -> Vec<u8> {
        loop {
            let mut head = [0; 8];
            self.peer.read_exact(&mut head).unwrap();
            let mut body = vec![0; u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize];
            self.peer.read_exact(&mut body).unwrap();
            if head[3] != 2 {
                assert_eq!((head[0], head[1], head[3]), (0xCA, 2, command));
                return body;
            }
        }
    }

    /// Waits until the recorder has taken `updates` since the last call.
    fn acknowledged(&mut self, updates: u32) {
        let mut sum = 0;
        while sum < updates {
            let ack = self.request(13);
            assert_eq!((&ack[..4], ack[8]), (&SERVER_ID.to_le_bytes()[..], 0x80));
            sum += u32::from_le_bytes(ack[9..13].try_into().unwrap());
        }
        assert_eq!(sum, updates);
    }

    /// All fields of an image.
    fn whole(&self, number: i32) -> Vec<u8> {
        // Bit 0 is the structure.
        [self.head(0), vec![1, 1], array(number), number_of(number), time_of(number), shape(), vec![0]]
            .concat()
    }

    /// Pixels, number and time of an image.
    fn partial(&self, number: i32) -> Vec<u8> {
        let bits = 1 << 1 | 1 << 2 | 1 << 3;
        [self.head(0), vec![1, bits], array(number), number_of(number), time_of(number), vec![0]].concat()
    }

    /// Sends images: every third one whole in one message, whole in segments, or in part.
    fn images(&mut self, numbers: std::ops::Range<i32>) {
        for number in numbers {
            let bytes = match number % 3 {
                0 => message(13, &self.whole(number)),
                1 => segmented(13, &self.whole(number), 1000),
                _ => message(13, &self.partial(number)),
            };
            self.peer.write_all(&bytes).unwrap();
        }
    }
}

fn array(number: i32) -> Vec<u8> {
    [vec![0], size(WIDTH * HEIGHT), pixels(number)].concat()
}

fn number_of(number: i32) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

fn time_of(number: i32) -> Vec<u8> {
    [&SECONDS.to_le_bytes()[..], &number.to_le_bytes(), &[0; 4]].concat()
}

fn shape() -> Vec<u8> {
    let sizes = [WIDTH, HEIGHT]
        .iter()
        .flat_map(|size| [&[1][..], &(*size as u32).to_le_bytes(), &[1, 0, 0, 0]].concat());
    let mode = [vec![1, 1], text("Mode"), vec![0x60], text("fast")].concat();
    [vec![2], sizes.collect(), mode].concat()
}

fn record(here: &Path, addresses: &[SocketAddr]) -> Program {
    std::fs::create_dir_all(here.join("a")).unwrap();
    let sources: Vec<String> = addresses.iter().map(|address| format!("pva://{address}/{PV}")).collect();
    let sources = sources.iter().flat_map(|source| ["--from", source]);
    let settings = ["--name", "run", "--json", "--volume", "a", "--pool", "64 MiB", "--segment", "32 MiB"];
    start(here, &["record"].into_iter().chain(sources).chain(settings).collect::<Vec<_>>())
}

fn stop(program: Program) -> Run {
    program.signal("INT");
    program.wait()
}

/// Numbers of the recorded images, each compared with what was sent. `first` is the number of the first
/// image; -1: the numbers have restarted.
fn numbers(here: &Path, first: i32) -> Vec<i32> {
    let mut numbers = Vec::new();
    for segment in segments(&here.join("a/run")) {
        let bytes = std::fs::read(segment).unwrap();
        for message in mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap) {
            assert_eq!(message.channel.topic, PV);
            let number = (message.log_time - SECONDS * 1_000_000_000) as i32;
            assert!(*message.data == pixels(number), "image {number}");
            assert!(first < 0 || message.sequence == (number - first) as u32, "image {number}");
            numbers.push(number);
        }
    }
    numbers
}

#[test]
fn images_of_a_pv_are_recorded() {
    let directory = directory();
    let here = directory.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut program = record(here, &[listener.local_addr().unwrap()]);
    program.line("receiving from pva://127.0.0.1:");
    let mut server = Server::accept(&listener);
    // The image that the server had before.
    server.images(99..100);
    for batch in 0..60 {
        let first = 100 + 8 * batch;
        server.images(first..first + 8);
        if batch % 8 == 0 {
            server.send(2, &[]);
        }
    }
    server.acknowledged(481);
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    let sent = (480, 480 * IMAGE_BYTES as u64);
    assert_eq!((count(&account["received"]), count(&account["durable"])), (sent, sent));
    assert_eq!(account["incidents"]["total"], 0);
    assert_eq!(verified(here, "a/run"), sent);
    assert_eq!(numbers(here, 100), (100..580).collect::<Vec<_>>());
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(here.join("a/run/keepup.json")).unwrap()).unwrap();
    let expected = serde_json::json!({"pv": PV, "first_unique_id": "100", "Mode": "fast"});
    assert_eq!(manifest["metadata"], expected);
}

#[test]
fn a_monitor_continues_after_its_connection_was_cut() {
    let directory = directory();
    let here = directory.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[listener.local_addr().unwrap()]);
    let mut server = Server::accept(&listener);
    server.images(6..22);
    let cut = message(13, &server.whole(22));
    server.peer.write_all(&cut[..cut.len() / 2]).unwrap();
    server.acknowledged(16);
    drop(server);
    let mut server = Server::accept(&listener);
    // Images 22 to 24 went with the connection; 30 and 31 are missing without a reason.
    server.images(25..30);
    server.images(32..43);
    server.acknowledged(16);
    let run = stop(program);
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    let gaps = &account["ledger"]["streams"]["0"]["gap_events"];
    assert_eq!(gaps, &serde_json::json!({"connection_lost": 3, "sequence_gap": 2}));
    let expected: Vec<i32> = (7..22).chain(25..30).chain(32..43).collect();
    assert_eq!(numbers(here, 7), expected);
    let report = json(&keepup(here, &["verify", "a/run", "--json"]));
    assert_eq!((report["fault_count"].as_u64(), recorded(&report).0), (Some(0), expected.len() as u64));
}

#[test]
fn a_detector_that_was_started_again_continues_the_recording() {
    let directory = directory();
    let here = directory.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[listener.local_addr().unwrap()]);
    let mut server = Server::accept(&listener);
    server.images(1000..1008);
    server.acknowledged(8);
    server.images(0..8);
    server.acknowledged(8);
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    assert_eq!(count(&account["durable"]).0, 15);
    let incidents = account["incidents"].to_string();
    assert!(incidents.contains("restarts of uniqueId; losses at a restart are unknown: 1"), "{incidents}");
    assert_eq!(numbers(here, -1), (1001..1008).chain(0..8).collect::<Vec<_>>());
}

#[test]
fn several_pvs_are_one_recording() {
    let directory = directory();
    let here = directory.path();
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
    let program = record(here, &addresses);
    for listener in &listeners {
        let mut server = Server::accept(listener);
        server.images(0..8);
        server.acknowledged(8);
        // Stays connected.
        std::mem::forget(server);
    }
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    let events = |stream: &str| account["ledger"]["streams"][stream]["durable"]["events"].as_u64();
    assert_eq!((events("0"), events("16")), (Some(7), Some(7)));
    let report = json(&keepup(here, &["verify", "a/run", "--json"]));
    assert_eq!(report["streams"]["16"]["name"], format!("{}/{PV}", addresses[1]));
    let manifest = std::fs::read_to_string(here.join("a/run/keepup.json")).unwrap();
    assert!(manifest.contains(&format!("\"{}/{PV}/Mode\": \"fast\"", addresses[1])), "{manifest}");
}

/// The recorder ends with this reason after it has recorded `events` images.
#[track_caller]
fn ends_with(body: impl FnOnce(&Server) -> Vec<u8>, events: u64, reason: &str) {
    let directory = directory();
    let here = directory.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[listener.local_addr().unwrap()]);
    let mut server = Server::accept(&listener);
    server.images(0..8);
    let bytes = body(&server);
    // The recorder may disconnect before it has read all of it.
    let _ = server.peer.write_all(&bytes);
    let run = program.wait();
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert!(account["ended"].to_string().contains(reason), "{account:#}");
    assert_eq!(count(&account["durable"]).0, events);
    let report = json(&keepup(here, &["verify", "a/run", "--json"]));
    assert_eq!((report["fault_count"].as_u64(), recorded(&report).0), (Some(0), events));
}

#[test]
fn hostile_lengths_end_the_recording_of_their_server() {
    let head = |flags: u8, length: u32| [&[0xCA, 2, flags, 13][..], &length.to_le_bytes()].concat();
    ends_with(|_| head(0x40, u32::MAX), 7, "it has 4294967295 bytes, more than");
    let endless = |_: &Server| {
        let segment = [head(0x70, 1 << 24), vec![0; 1 << 24]].concat();
        [head(0x50, 0), segment.repeat(20)].concat()
    };
    ends_with(endless, 7, "cannot receive message: it has ");
    let array = |server: &Server| {
        message(13, &[server.head(0), vec![1, 1 << 1, 0, 254, 255, 255, 255, 0x3F]].concat())
    };
    ends_with(array, 7, "1073741823 elements of 2 bytes were announced, 0 bytes are left");
    ends_with(|_| b"HTTP/1.1 400 Bad Request\r\n".to_vec(), 7, "the peer did not send a pvAccess header");
}

#[test]
fn an_image_of_another_size_is_rejected() {
    let directory = directory();
    let here = directory.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[listener.local_addr().unwrap()]);
    let mut server = Server::accept(&listener);
    server.images(0..8);
    let bits = 1 << 1 | 1 << 2;
    let sizes = [[1].as_slice(), &(HEIGHT as u32).to_le_bytes(), &[1, 0, 0, 0]].concat();
    let other = [[1].as_slice(), &(WIDTH as u32).to_le_bytes(), &[1, 0, 0, 0]].concat();
    // Bit 7 is `dimension`.
    let body =
        [server.head(0), vec![1, bits | 1 << 7], array(8), number_of(8), vec![2], sizes, other, vec![0]];
    server.peer.write_all(&message(13, &body.concat())).unwrap();
    // The first one has all fields.
    server.images(9..18);
    server.acknowledged(18);
    let run = stop(program);
    let account = json(&run);
    assert_eq!((run.code(), count(&account["durable"]).0), (1, 16), "{run:#?}");
    assert_eq!(numbers(here, 1), (1..8).chain(9..18).collect::<Vec<_>>());
    let row = &account["rejected"][0];
    assert_eq!((&row["reason"], &row["count"]), (&"contradictory".into(), &1.into()), "{account:#}");
    let detail = "image 8 is 64x48 u16, uncompressed; the stream has 48x64 u16, uncompressed";
    assert_eq!((&row["detail"], &account["rejected"][1]), (&detail.into(), &serde_json::Value::Null));
}

/// Images that come out of order or twice are recorded once, in their place.
#[test]
fn images_out_of_order_are_recorded_in_their_place() {
    let directory = directory();
    let here = directory.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[listener.local_addr().unwrap()]);
    let mut server = Server::accept(&listener);
    server.images(6..10);
    for number in [11, 10, 10, 9, 14, 13, 12] {
        server.images(number..number + 1);
    }
    server.images(15..20);
    server.acknowledged(16);
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(numbers(here, 7), (7..20).collect::<Vec<_>>());
    let account = json(&run);
    assert_eq!(
        (&account["missing_events"], &account["rejected"]),
        (&serde_json::json!({}), &serde_json::json!([]))
    );
    let incidents = account["incidents"].to_string();
    assert!(incidents.contains("repeated images, identical to those that are recorded: 2"), "{incidents}");
}

#[test]
fn a_pv_that_does_not_exist_is_reported() {
    let directory = directory();
    let here = directory.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[listener.local_addr().unwrap()]);
    let (peer, _) = listener.accept().unwrap();
    let mut server = Server { peer, id: 0 };
    server.send(1, &[&[0, 0, 1, 0, 0xFF, 0x7F][..], &size(1), &text("anonymous")].concat());
    server.request(1);
    server.send(9, &[0xFF]);
    let create = server.request(7);
    server.send(7, &[&create[2..6], &[0; 4], &[2], &text("channel not found"), &text("")].concat());
    let run = program.wait();
    assert_eq!(run.code(), 1, "{run:#?}");
    let ended = json(&run)["ended"].to_string();
    assert!(ended.contains("cannot monitor PV: the server has no such PV: channel not found"), "{ended}");
}

/// Starts a simulated IOC; returns it and the address of its PV.
fn simulated(here: &Path, settings: &[&str]) -> (Program, String) {
    let fixed = ["source", "eiger2-4m-8bit", "--as", "pvaccess", "--listen", "127.0.0.1:0", "--json"];
    let mut source = start(here, &[&fixed, settings].concat());
    let line = source.line("waiting for a recorder: ");
    let from = line.rsplit(' ').next().unwrap().trim_end_matches('`').to_owned();
    assert!(from.ends_with("/SIM:Pva1:Image"), "{line}");
    (source, from)
}

fn record_from(here: &Path, from: &str, more: &[&str]) -> Program {
    std::fs::create_dir_all(here.join("a")).unwrap();
    let settings = ["record", "--from", from, "--name", "run", "--json", "--volume", "a", "--pool", "64 MiB"];
    start(here, &[&settings, more].concat())
}

#[test]
fn a_simulated_ioc_serves_the_images_of_a_detector() {
    let directory = directory();
    let here = directory.path();
    let (source, from) = simulated(here, &["--events", "40", "--rate", "max"]);
    let run = record_from(here, &from, &["--stop-after", "40 events"]).wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let sent = (40, 40 * 2048 * 2048);
    assert_eq!((verified(here, "a/run"), json(&run)["missing_events"].to_string()), (sent, "{}".to_owned()));
    let source = source.wait();
    assert_eq!((source.code(), count(&json(&source)["sent"])), (0, sent), "{source:#?}");
    let manifest = std::fs::read(here.join("a/run/keepup.json")).unwrap();
    let metadata = &serde_json::from_slice::<serde_json::Value>(&manifest).unwrap()["metadata"];
    assert_eq!((&metadata["first_unique_id"], &metadata["ColorMode"]), (&"1".into(), &"0".into()));
}

#[test]
fn images_that_a_slow_recorder_misses_are_counted_on_both_sides() {
    let directory = directory();
    let here = directory.path();
    // The queue of the recorder and the buffer of the IOC together hold a dozen images.
    let rate = ["--event", "256 KiB", "--rate", "200 /s", "--buffer", "2 MiB", "--time", "10min"];
    let (source, from) = simulated(here, &rate);
    let mut recorder = record_from(here, &format!("{from},queue=4"), &["--http", "127.0.0.1:0"]);
    let page = recorder.line("live page: http://");
    let received = || {
        let (_, text) = get(&page, "/metrics", "");
        let line = text.lines().find(|line| line.starts_with("keepup_stream_received_events"));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
    };
    until("images arrive", || received() > 20);
    // The clock of the detector goes on while the recorder stands still.
    recorder.signal("STOP");
    std::thread::sleep(std::time::Duration::from_millis(700));
    recorder.signal("CONT");
    let before: u64 = received();
    until("images arrive again", || received() > before + 100);
    source.signal("INT");
    let source = source.wait();
    let run = stop(recorder);
    assert_eq!((run.code(), source.code()), (1, 1), "{run:#?} {source:#?}");
    let (account, report) = (json(&run), json(&source));
    let (sent, lost) = (count(&report["sent"]), count(&report["lost_at_source"]).0);
    assert!(lost > 50, "{report}");
    assert_eq!((count(&account["received"]), count(&account["durable"])), (sent, sent));
    assert_eq!(account["missing_events"], serde_json::json!({"sequence_gap": lost}));
    let report = json(&keepup(here, &["verify", "a/run", "--json"]));
    assert_eq!((report["fault_count"].as_u64(), recorded(&report)), (Some(0), sent));
}

#[test]
fn trials_over_pvaccess_name_the_transport() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir(here.join("a")).unwrap();
    let trial = ["trial", "oryx-51s5m", "--rate", "40 MB/s", "--time", "2s", "--volume", "a", "--json"];
    let run = keepup(here, &trial);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(run.stderr.contains("over 1 connection, protocol pvaccess;"), "{run:#?}");
    let ledger = &json(&run)["runs"][0]["ledger"];
    assert!(ledger["verified"]["events"].as_u64() > Some(0), "{run:#?}");
    assert_eq!((&ledger["verified"], &ledger["lost"]["events"]), (&ledger["sent"], &0.into()), "{run:#?}");
    // The IOC is still there when the trial ends.
    assert!(!run.stdout.contains("streams lost"), "{run:#?}");
}
