//! blktrace's binary files: both byte orders, several processors, damage.
use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::trace::tests::{names, read, refused, short};
use crate::{Flags, Hints, Operation, Trace};

/// An event in the kernel's layout, followed by `data`.
#[derive(Clone, Debug)]
struct Made {
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    data: Vec<u8>,
}

const QUEUE_BIT: u32 = 1 << 4;
const READ_BIT: u32 = 1;

fn made(time: u64, sector: u64, bytes: u32, action: u32, categories: u32) -> Made {
    Made { time, sector, bytes, action: action | categories << 16, device: 8 << 20, data: Vec::new() }
}

fn queued(time: u64, sector: u64, bytes: u32) -> Made {
    made(time, sector, bytes, QUEUE, QUEUE_BIT | READ_BIT)
}

fn completed(time: u64, sector: u64, bytes: u32) -> Made {
    made(time, sector, bytes, COMPLETE, 1 << 7 | READ_BIT)
}

fn encode(events: &[Made], is_big: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let four = |file: &mut Vec<u8>, word: u32| {
        file.extend(if is_big { word.to_be_bytes() } else { word.to_le_bytes() });
    };
    for (number, event) in events.iter().enumerate() {
        four(&mut file, MAGIC | VERSION);
        four(&mut file, number as u32);
        for long in [event.time, event.sector] {
            file.extend(if is_big { long.to_be_bytes() } else { long.to_le_bytes() });
        }
        for word in [event.bytes, event.action, 697, event.device, 1] {
            four(&mut file, word);
        }
        for half in [0, event.data.len() as u16] {
            file.extend(if is_big { half.to_be_bytes() } else { half.to_le_bytes() });
        }
        file.extend(&event.data);
    }
    file
}

fn scene() -> Vec<Made> {
    let notify = Made { data: b"fio\0".to_vec(), ..made(1_000, 0, 0, 0, NOTIFY) };
    vec![
        notify,
        queued(1_000, 8, 4096),
        made(1_500, 8, 4096, 3, QUEUE_BIT | READ_BIT),
        made(1_700, 8, 4096, ISSUE, READ_BIT),
        made(2_000, 80, 8192, QUEUE | 1 << 8, QUEUE_BIT | WRITE | SYNC | FUA | FLUSH),
        made(3_000, u64::MAX / 1024, 0, QUEUE, QUEUE_BIT | FLUSH | WRITE),
        made(4_000, 160, 65_536, QUEUE, QUEUE_BIT | DISCARD | WRITE),
        made(4_500, 0, 36, QUEUE, QUEUE_BIT | COMMAND),
        completed(51_000, 8, 4096),
    ]
}

#[test]
fn both_byte_orders_are_read() {
    for is_big in [false, true] {
        let (records, trace) = read(encode(&scene(), is_big));
        let expected = [
            (0, Some(50_000), Operation::Read, 0, 4096, 4096),
            (1_000, None, Operation::Write, 0, 40_960, 8192),
            (2_000, None, Operation::Flush, 0, 0, 0),
            (3_000, None, Operation::Discard, 0, 81_920, 65_536),
        ];
        assert_eq!(short(&records), expected);
        assert_eq!(records[1].flags, Flags::SYNC.with(Flags::FUA).with(Flags::PREFLUSH));
        assert_eq!(names(&trace), ["8,0"]);
        let corrections = trace.corrections();
        assert_eq!((corrections.other_events, corrections.other_operations), (2, 1));
        let stages = trace.stages().unwrap();
        assert_eq!((stages.records, stages.q2d.p50_ns), (1, 700));
        assert!(stages.d2c.p50_ns.abs_diff(49_300) < 50, "{stages:?}");
        assert!((stages.q2d_share.unwrap() - 700.0 / 50_000.0).abs() < 1e-9);
    }
}

/// Reads several files as one trace.
fn merged(files: Vec<Vec<u8>>) -> Result<Vec<crate::Record>, crate::TraceError> {
    let here = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (number, file) in files.iter().enumerate() {
        paths.push(here.path().join(format!("sda.blktrace.{number}")));
        std::fs::write(&paths[number], file).unwrap();
    }
    let mut trace = Trace::open(&paths, &Hints::default(), None)?;
    let mut records = Vec::new();
    while trace.fill(&mut records)? {}
    assert_eq!(trace.corrections().reordered, 0);
    let empty = files.iter().filter(|file| file.is_empty()).count() as u64;
    assert_eq!(trace.corrections().empty_files, empty);
    Ok(records)
}

#[test]
fn files_of_all_processors_are_one_trace() {
    // Requests complete on another processor; one file is empty, one has the other byte order.
    let first = encode(&[queued(0, 0, 512), queued(200, 8, 512), completed(900, 16, 512)], false);
    let second = encode(&[completed(100, 0, 512), queued(300, 16, 512)], true);
    let records = merged(vec![Vec::new(), first, Vec::new(), second]);
    let expected = [
        (0, Some(100), Operation::Read, 0, 0, 512),
        (200, None, Operation::Read, 0, 4096, 512),
        (300, Some(900), Operation::Read, 0, 8192, 512),
    ];
    assert_eq!(short(&records.unwrap()), expected);
    let refused = merged(vec![Vec::new(), Vec::new()]).unwrap_err().to_string();
    assert!(refused.contains("all of its files are empty"), "{refused}");
}

#[test]
fn an_error_in_the_second_file_names_it() {
    let good = encode(&[queued(0, 0, 512)], false);
    let mut cut = encode(&[queued(5, 0, 512), queued(6, 0, 512)], false);
    cut.truncate(60);
    let message = merged(vec![good.clone(), cut]).unwrap_err().to_string();
    assert!(message.contains("byte 48 of") && message.contains("sda.blktrace.1"), "{message}");
    let message = merged(vec![good, b"0,8,512,R,0\n".to_vec()]).unwrap_err().to_string();
    assert!(message.contains("cannot read several files as one trace"), "{message}");
}

#[test]
fn damage_is_reported_with_its_position() {
    let whole = encode(&scene(), false);
    // The first event has four bytes of data.
    let at = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = whole.clone();
        change(&mut file);
        refused(file)
    };
    let message = at(&|file| file.truncate(whole.len() - 1));
    assert!(
        message.contains("byte 388 of made") && message.contains("ends after 47 bytes of an event"),
        "{message}"
    );
    let message = at(&|file| file.truncate(50));
    assert!(message.contains("byte 0 of made") && message.contains("is truncated"), "{message}");
    let message = at(&|file| file[52] = 0x08);
    assert!(
        message.contains("byte 52 of made") && message.contains("version 8 is not supported, only 7"),
        "{message}"
    );
    let message = at(&|file| file[53] ^= 1);
    assert!(message.contains("byte 52 of made") && message.contains("is not the magic number"), "{message}");
    let message = at(&|file| file.extend(encode(&[queued(0, 0, 512)], true)));
    assert!(message.contains("byte 436 of made") && message.contains("byte order changes"), "{message}");
}

proptest! {
    #[test]
    fn encoded_events_are_read(
        events in prop::collection::vec((0u64..1 << 40, 0u64..1 << 40, 1u32..1 << 20, 0usize..70), 1..60),
        is_big: bool,
    ) {
        let mut events: Vec<Made> = events
            .into_iter()
            .map(|(time, sector, bytes, data)| Made { data: vec![7; data], ..queued(time, sector, bytes) })
            .collect();
        events.sort_by_key(|event| event.time);
        let (records, _) = read(encode(&events, is_big));
        let expected: Vec<_> = events
            .iter()
            .map(|e| (e.time - events[0].time, None, Operation::Read, 0, e.sector * 512, e.bytes))
            .collect();
        prop_assert_eq!(short(&records), expected);
    }

    #[test]
    fn changed_bytes_never_panic(position in 0usize..436, byte: u8, cut in 0usize..436) {
        let mut file = encode(&scene(), false);
        file[position] = byte;
        file.truncate(cut.max(4));
        if let Ok(mut reader) = Blktrace::new(vec![Cursor::new(file)]) {
            let mut batch = Batch::default();
            while let Ok(true) = reader.fill(&mut batch) {}
            prop_assert!(batch.records.len() <= 8);
        }
    }
}
