//! Detectors that the recorder connects to. The messages are written here from the vendor's description of
//! Stream V2 and from RFC 8949, not by the recorder's decoder.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use keepup_testkit::program::Program;

use crate::common::{count, directory, json, segments, start, verified};

const CHANNELS: [&str; 2] = ["threshold_1", "threshold_2"];
const WIDTH: u64 = 64;
const HEIGHT: u64 = 48;
pub(super) const IMAGE_BYTES: u64 = WIDTH * HEIGHT * 2;

/// Head of a CBOR item: major type, and its length or value.
fn head(major: u8, value: u64) -> Vec<u8> {
    match u8::try_from(value) {
        Ok(value) if value < 24 => vec![major << 5 | value],
        Ok(value) => vec![major << 5 | 24, value],
        Err(_) => [&[major << 5 | 27][..], &value.to_be_bytes()].concat(),
    }
}

fn number(value: u64) -> Vec<u8> {
    head(0, value)
}

fn text(value: &str) -> Vec<u8> {
    [head(3, value.len() as u64), value.as_bytes().to_vec()].concat()
}

fn array(items: &[Vec<u8>]) -> Vec<u8> {
    [head(4, items.len() as u64), items.concat()].concat()
}

fn tag(tag: u64, item: Vec<u8>) -> Vec<u8> {
    [head(6, tag), item].concat()
}

fn map(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let pairs = fields.iter().flat_map(|(key, value)| [text(key), value.clone()].concat());
    head(5, fields.len() as u64).into_iter().chain(pairs).collect()
}

/// A message, marked as CBOR as detectors mark it (tag 55799).
fn message(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
    [&[0xD9, 0xD9, 0xF7][..], &map(fields)].concat()
}

fn start_message(images: u64) -> Vec<u8> {
    start_of_series(7, images)
}

pub(super) fn start_of_series(series: u64, images: u64) -> Vec<u8> {
    message(&[
        ("type", text("start")),
        ("series_id", number(series)),
        ("series_unique_id", text("01H")),
        ("channels", array(&CHANNELS.map(text))),
        (
            "user_data",
            map(&[(CHANNELS[0], tag(40, array(&[array(&[number(1), number(2)]), text("skipped")])))]),
        ),
        ("image_dtype", text("uint16")),
        ("image_size_x", number(WIDTH)),
        ("image_size_y", number(HEIGHT)),
        ("number_of_images", number(images)),
    ])
}

/// Pixels of an image: every image of every channel differs from the others.
fn pixels(image: u64, channel: usize) -> Vec<u8> {
    (0..IMAGE_BYTES).map(|at| (at + 31 * image + 7 * channel as u64) as u8).collect()
}

fn image_message(image: u64) -> Vec<u8> {
    image_of_series(7, image)
}

pub(super) fn image_of_series(series: u64, image: u64) -> Vec<u8> {
    let data = |channel: usize| {
        let pixels = pixels(image, channel);
        let bytes = [head(2, IMAGE_BYTES), pixels].concat();
        let size = array(&[number(HEIGHT), number(WIDTH)]);
        (CHANNELS[channel], tag(40, array(&[size, tag(69, bytes)])))
    };
    message(&[
        ("type", text("image")),
        ("series_id", number(series)),
        ("series_unique_id", text("01H")),
        ("image_id", number(image)),
        ("series_date", tag(0, text("2026-11-26T08:00:00Z"))),
        ("start_time", array(&[number(image), number(1000)])),
        ("data", map(&[data(0), data(1)])),
    ])
}

fn end_message() -> Vec<u8> {
    end_of_series(7)
}

pub(super) fn end_of_series(series: u64) -> Vec<u8> {
    message(&[("type", text("end")), ("series_id", number(series)), ("series_unique_id", text("01H"))])
}

/// A ZeroMQ frame.
pub(super) fn frame(message: &[u8]) -> Vec<u8> {
    [&[2][..], &(message.len() as u64).to_be_bytes(), message].concat()
}

/// Greets a PULL socket that has connected, as a PUSH socket does.
pub(super) fn accepted(detector: &TcpListener) -> TcpStream {
    let (mut peer, _) = detector.accept().unwrap();
    let mut greeting = vec![0; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xFF, 0x7F, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    peer.write_all(&greeting).unwrap();
    let mut found = [0; 64];
    peer.read_exact(&mut found).unwrap();
    assert_eq!((found[0], found[9], found[10], &found[12..17]), (0xFF, 0x7F, 3, &b"NULL\0"[..]));
    peer.write_all(b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH").unwrap();
    let mut ready = vec![0; 2 + 0x1a];
    peer.read_exact(&mut ready).unwrap();
    assert_eq!(ready, b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PULL");
    peer
}

fn record(here: &Path, addresses: &[SocketAddr]) -> Program {
    std::fs::create_dir_all(here.join("a")).unwrap();
    let sources: Vec<String> = addresses.iter().map(|address| format!("zmq://{address}")).collect();
    let sources = sources.iter().flat_map(|source| ["--from", source]);
    let settings = ["--name", "run", "--json", "--volume", "a", "--pool", "64 MiB", "--segment", "32 MiB"];
    start(here, &["record"].into_iter().chain(sources).chain(settings).collect::<Vec<_>>())
}

fn sends(peer: &mut TcpStream, images: std::ops::Range<u64>) {
    images.for_each(|image| peer.write_all(&frame(&image_message(image))).unwrap());
}

#[test]
fn a_series_of_a_detector_is_recorded() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut program = record(here, &[detector.local_addr().unwrap()]);
    program.line("receiving from zmq://127.0.0.1:");
    let mut peer = accepted(&detector);
    peer.write_all(&frame(&start_message(500))).unwrap();
    sends(&mut peer, 0..500);
    peer.write_all(&frame(&end_message())).unwrap();
    let run = program.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    let sent = (1000, 1000 * IMAGE_BYTES);
    assert_eq!((count(&account["received"]), count(&account["durable"])), (sent, sent));
    assert_eq!(verified(here, "a/run"), sent);
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(here.join("a/run/keepup.json")).unwrap()).unwrap();
    let metadata = &manifest["metadata"];
    assert_eq!((&metadata["series_id"], &metadata["image_dtype"]), (&"7".into(), &"uint16".into()));
    let mut found = 0;
    for segment in segments(&here.join("a/run")) {
        let bytes = std::fs::read(segment).unwrap();
        for message in mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap) {
            let image = u64::from(message.sequence);
            let channel = CHANNELS.iter().position(|name| *name == message.channel.topic).unwrap();
            assert!(*message.data == pixels(image, channel), "image {image} of channel {channel}");
            // 2026-11-26T08:00:00Z and a millisecond for each image.
            assert_eq!(message.log_time, 1_795_680_000_000_000_000 + image * 1_000_000);
            found += 1;
        }
    }
    assert_eq!(found, 1000);
}

#[test]
fn a_series_continues_after_its_connection_was_cut() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[detector.local_addr().unwrap()]);
    let mut peer = accepted(&detector);
    peer.write_all(&frame(&start_message(30))).unwrap();
    sends(&mut peer, 0..10);
    let cut = frame(&image_message(10));
    peer.write_all(&cut[..cut.len() / 2]).unwrap();
    drop(peer);
    let mut peer = accepted(&detector);
    // Images 10 to 14 went with the connection; 20 and 21 are missing without a reason.
    sends(&mut peer, 15..20);
    sends(&mut peer, 22..28);
    peer.write_all(&frame(&end_message())).unwrap();
    let run = program.wait();
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    let received = (2 * 21, 2 * 21 * IMAGE_BYTES);
    assert_eq!((count(&account["received"]), count(&account["durable"])), (received, received));
    for stream in ["0", "1"] {
        let gaps = &account["ledger"]["streams"][stream]["gap_events"];
        // With 28 and 29, which the start promised.
        assert_eq!((&gaps["connection_lost"], &gaps["sequence_gap"]), (&5.into(), &4.into()), "{gaps}");
    }
    assert_eq!(verified_with_gaps(here), received);
}

/// A flat field is recorded once although the connection is cut and the start message is repeated, and a
/// reduction of all streams leaves it as it is.
#[test]
fn a_map_is_recorded_once_and_unchanged() {
    let directory = directory();
    let here = directory.path();
    std::fs::create_dir_all(here.join("a")).unwrap();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let from = format!("zmq://{}", detector.local_addr().unwrap());
    let settings = ["--volume", "a", "--pool", "64 MiB", "--segment", "32 MiB", "--reduce", "bin by=2x2"];
    let program =
        start(here, &[&["record", "--name", "run", "--json", "--from", &from], &settings[..]].concat());
    let flatfield: Vec<u8> = (0..WIDTH * HEIGHT).flat_map(|pixel| (pixel as f32).to_le_bytes()).collect();
    let bytes = [head(2, flatfield.len() as u64), flatfield.clone()].concat();
    let elements = tag(40, array(&[array(&[number(HEIGHT), number(WIDTH)]), tag(85, bytes)]));
    // One more field than the start message has.
    let mut start = start_message(30);
    start[3] += 1;
    start.extend([text("flatfield"), map(&[(CHANNELS[1], elements)])].concat());
    let mut peer = accepted(&detector);
    peer.write_all(&frame(&start)).unwrap();
    sends(&mut peer, 0..10);
    drop(peer);
    let mut peer = accepted(&detector);
    peer.write_all(&frame(&start)).unwrap();
    sends(&mut peer, 15..30);
    peer.write_all(&frame(&end_message())).unwrap();
    let run = program.wait();
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    let received = (2 * 25 + 1, 2 * 25 * IMAGE_BYTES + flatfield.len() as u64);
    assert_eq!(count(&account["received"]), received);
    let map = &account["ledger"]["streams"]["49152"];
    assert_eq!((&map["gap_events"], count(&map["sent"]).0), (&serde_json::json!({}), 1), "{map}");
    let mut found = 0;
    for segment in segments(&here.join("a/run")) {
        let bytes = std::fs::read(segment).unwrap();
        for message in mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap) {
            match message.channel.topic.as_str() {
                "threshold_2-flatfield" => assert!(*message.data == flatfield, "other values"),
                _ => assert_eq!(message.data.len() as u64, IMAGE_BYTES / 2, "an image was not reduced"),
            }
            found += u64::from(message.channel.topic == "threshold_2-flatfield");
        }
    }
    assert_eq!(found, 1);
}

#[test]
fn missing_images_add_up() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[detector.local_addr().unwrap()]);
    let mut peer = accepted(&detector);
    peer.write_all(&frame(&start_message(30))).unwrap();
    sends(&mut peer, 0..10);
    sends(&mut peer, 15..25);
    peer.write_all(&frame(&end_message())).unwrap();
    let account = json(&program.wait());
    let stream = &account["ledger"]["streams"]["1"];
    assert_eq!((&stream["gap_events"]["sequence_gap"], count(&stream["sent"]).0), (&10.into(), 30));
    assert_eq!((&account["trouble"], &account["whole"]), (&serde_json::json!([]), &false.into()));
}

#[test]
fn a_detector_that_is_armed_again_after_a_cut_ends_its_series() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[detector.local_addr().unwrap()]);
    let mut peer = accepted(&detector);
    peer.write_all(&frame(&start_message(30))).unwrap();
    sends(&mut peer, 0..10);
    drop(peer);
    let mut peer = accepted(&detector);
    let other = message(&[
        ("type", text("start")),
        ("series_id", number(8)),
        ("channels", array(&[text("x")])),
        ("image_dtype", text("uint8")),
        ("image_size_x", number(1)),
        ("image_size_y", number(1)),
    ]);
    peer.write_all(&frame(&other)).unwrap();
    let run = program.wait();
    assert_eq!(run.code(), 1, "{run:#?}");
    let gaps = &json(&run)["ledger"]["streams"]["0"]["gap_events"];
    assert_eq!(gaps, &serde_json::json!({"connection_lost": 20}));
}

/// Events and bytes of a recording with gaps, which must have no faults.
fn verified_with_gaps(here: &Path) -> (u64, u64) {
    let run = crate::common::keepup(here, &["verify", "a/run", "--json"]);
    assert_eq!(run.code(), 1, "{run:#?}");
    let report = json(&run);
    assert_eq!(report["fault_count"], 0, "{report:#}");
    crate::common::recorded(&report)
}

#[test]
fn several_detectors_are_one_recording() {
    let directory = directory();
    let here = directory.path();
    let detectors = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = detectors.each_ref().map(|detector| detector.local_addr().unwrap());
    let program = record(here, &addresses);
    let mut peers = detectors.each_ref().map(accepted);
    for (peer, images) in peers.iter_mut().zip([50, 80, 20]) {
        peer.write_all(&frame(&start_message(images))).unwrap();
        sends(peer, 0..images);
        peer.write_all(&frame(&end_message())).unwrap();
    }
    let run = program.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    let events = |stream: u64| account["ledger"]["streams"][stream.to_string()]["durable"]["events"].as_u64();
    assert_eq!([0, 1, 16, 17, 32, 33].map(events), [50, 50, 80, 80, 20, 20].map(Some));
    let report = json(&crate::common::keepup(here, &["verify", "a/run", "--json"]));
    assert_eq!((report["fault_count"].as_u64(), crate::common::recorded(&report).0), (Some(0), 300));
    let manifest = std::fs::read_to_string(here.join("a/run/keepup.json")).unwrap();
    assert!(manifest.contains(&format!("\"{}/series_id\": \"7\"", addresses[1])), "{manifest}");
    assert_eq!(report["streams"]["33"]["name"], format!("{}-threshold_2", addresses[2]));
}

#[test]
fn the_recorder_waits_for_a_detector() {
    let directory = directory();
    let here = directory.path();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut program = record(here, &[address]);
    program.line("receiving from ");
    std::thread::sleep(std::time::Duration::from_millis(200));
    let detector = TcpListener::bind(address).unwrap();
    let mut peer = accepted(&detector);
    peer.write_all(&[frame(&start_message(0)), frame(&end_message())].concat()).unwrap();
    let run = program.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let incidents = json(&run)["incidents"].to_string();
    assert!(incidents.contains("trying again every second"), "{incidents}");
}

#[test]
fn what_is_no_detector_ends_the_recording_with_a_reason() {
    let directory = directory();
    let here = directory.path();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[server.local_addr().unwrap()]);
    let (mut peer, _) = server.accept().unwrap();
    peer.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    let run = program.wait();
    assert_eq!(run.code(), 1, "{run:#?}");
    let ended = json(&run)["ended"].to_string();
    assert!(ended.contains("the peer did not send a ZeroMQ greeting"), "{ended}");
}

#[test]
fn what_breaks_off_is_recorded_up_to_there() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[detector.local_addr().unwrap()]);
    let mut peer = accepted(&detector);
    peer.write_all(&frame(&start_message(30))).unwrap();
    sends(&mut peer, 0..10);
    // No frame has these flags.
    peer.write_all(b"\xFF").unwrap();
    let run = program.wait();
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert_eq!(count(&account["durable"]).0, 20);
    assert!(account["ended"].to_string().contains("cannot read ZeroMQ messages"), "{account:#}");
    let run = crate::common::keepup(here, &["verify", "a/run"]);
    let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(run.code() == 1 && words.contains("did not end cleanly: zmq://"), "{run:#?}");
    assert!(words.contains("cannot read ZeroMQ messages"), "{words}");
}

/// Images that come twice or late, and messages that cannot be recorded, do not end the series.
#[test]
fn oddities_leave_the_other_images_as_they_are() {
    let directory = directory();
    let here = directory.path();
    let detector = TcpListener::bind("127.0.0.1:0").unwrap();
    let program = record(here, &[detector.local_addr().unwrap()]);
    let mut peer = accepted(&detector);
    peer.write_all(&frame(&start_message(30))).unwrap();
    sends(&mut peer, 0..10);
    sends(&mut peer, 9..10);
    sends(&mut peer, 3..4);
    peer.write_all(&frame(b"\xFFno CBOR")).unwrap();
    peer.write_all(&frame(&image_of_series(6, 10))).unwrap();
    sends(&mut peer, 11..12);
    sends(&mut peer, 10..11);
    sends(&mut peer, 12..30);
    peer.write_all(&frame(&end_message())).unwrap();
    let run = program.wait();
    let account = json(&run);
    let sent = (60, 60 * IMAGE_BYTES);
    assert_eq!((count(&account["received"]), count(&account["durable"])), (sent, sent), "{run:#?}");
    let gaps = &account["ledger"]["streams"]["0"]["gap_events"];
    assert_eq!(gaps, &serde_json::json!({}), "{run:#?}");
    assert!(account["incidents"].to_string().contains("repeated images, identical"), "{account:#}");
    let rows = account["rejected"].as_array().unwrap().iter();
    let rows: Vec<_> = rows.map(|row| (row["reason"].as_str(), row["count"].as_u64())).collect();
    assert_eq!(rows, [(Some("malformed"), Some(1)), (Some("outside_series"), Some(1))]);
    assert_eq!((run.code(), &account["whole"]), (1, &false.into()));
    for segment in segments(&here.join("a/run")) {
        let bytes = std::fs::read(segment).unwrap();
        for message in mcap::MessageStream::new(&bytes).unwrap().map(Result::unwrap) {
            let channel = CHANNELS.iter().position(|name| *name == message.channel.topic).unwrap();
            assert!(*message.data == pixels(message.sequence.into(), channel), "image {}", message.sequence);
        }
    }
}
