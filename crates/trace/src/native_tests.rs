//! The native format: round trips, and detection of any damage.
use proptest::prelude::*;

use super::*;
use crate::trace::tests::{read, read_with, refused};
use crate::{Format, Hints, Level, Origin, TraceClock, TraceDevice, TraceHeader, Unit};

fn header() -> TraceHeader {
    TraceHeader {
        format: Format::Msr,
        source: vec!["hm_1.csv".into()],
        unit: Unit::Bytes,
        clock: TraceClock::Issue,
        resolution_ns: 100,
        level: Level::Device,
        origin: Origin::Synthetic { personality: "web-server".into(), seed: 7 },
    }
}

fn corrections() -> Corrections {
    Corrections { reordered: 3, zero_sizes: 1, ..Corrections::default() }
}

/// A file of these records, with devices `a` and `b`.
fn file(records: &[Record]) -> Vec<u8> {
    let mut writer = NativeWriter::new(Vec::new(), &header()).unwrap();
    writer.device(&TraceDevice { name: "a".into(), bytes: Some(1 << 40) }).unwrap();
    for (number, record) in records.iter().enumerate() {
        // A device may be added at any time before its first request.
        if number == records.len() / 2 {
            writer.device(&TraceDevice { name: "b".into(), bytes: None }).unwrap();
        }
        writer.record(record).unwrap();
    }
    writer.finish(&corrections()).unwrap()
}

fn some() -> Vec<Record> {
    let read = Record::new(0, Operation::Read, 0, 4096, 512).completed(Some(0));
    let write = Record::new(9, Operation::Write, 0, 1 << 40, u32::MAX).flagged(Flags::FUA);
    vec![read, write, Record::new(9, Operation::Flush, 1, 0, 0), Record::new(10, Operation::Discard, 1, 0, 8)]
}

#[test]
fn header_devices_and_corrections_round_trip() {
    let (records, trace) = read(file(&some()));
    assert_eq!(records, some());
    assert_eq!(*trace.header(), header());
    assert_eq!(*trace.corrections(), Corrections { duplicate_times: 1, ..corrections() });
    assert_eq!(trace.devices()[0], TraceDevice { name: "a".into(), bytes: Some(1 << 40) });
    assert_eq!(trace.devices()[1].name, "b");
}

#[test]
fn every_truncation_is_detected() {
    let whole = file(&some());
    for length in MAGIC.len()..whole.len() {
        let message = refused(&whole[..length]);
        assert!(message.contains("byte ") && message.contains("is truncated"), "{length}: {message}");
    }
    let message = refused([&whole[..], b"x"].concat());
    assert!(message.contains("data follows the end"), "{message}");
}

#[test]
fn every_changed_byte_is_detected() {
    let whole = file(&some());
    for place in MAGIC.len()..whole.len() {
        for bit in [1, 0x80] {
            let mut damaged = whole.clone();
            damaged[place] ^= bit;
            let message = refused(damaged);
            assert!(message.contains("byte "), "{place}: {message}");
        }
    }
}

#[test]
fn a_missing_or_duplicate_frame_is_detected() {
    let many: Vec<Record> =
        (0..FRAME_RECORDS_MAX as u64 + 5).map(|n| Record::new(n, Operation::Read, 0, n * 512, 512)).collect();
    let mut writer = NativeWriter::new(Vec::new(), &header()).unwrap();
    writer.device(&TraceDevice { name: "a".into(), bytes: None }).unwrap();
    for record in &many {
        writer.record(record).unwrap();
    }
    let whole = writer.finish(&corrections()).unwrap();
    assert_eq!(read(whole.clone()).0, many);
    let first = whole.windows(4).position(|window| window == RECORDS).unwrap();
    let length = FRAME_BYTES + FRAME_RECORDS_MAX * RECORD_BYTES;
    let without = [&whole[..first], &whole[first + length..]].concat();
    assert!(refused(without).contains("missing or duplicated"));
    let doubled = [&whole[..first + length], &whole[first..]].concat();
    assert!(refused(doubled).contains("missing or duplicated"));
}

#[test]
fn the_writer_refuses_what_the_reader_would_refuse() {
    let mut writer = NativeWriter::new(Vec::new(), &header()).unwrap();
    let record = Record::new(5, Operation::Read, 0, 0, 512);
    assert!(writer.record(&record).is_err(), "unknown device");
    writer.device(&TraceDevice { name: "a".into(), bytes: None }).unwrap();
    writer.record(&record).unwrap();
    let mut earlier = record;
    earlier.issue_ns = 4;
    assert!(writer.record(&earlier).is_err(), "earlier than the previous one");
    assert!(writer.record(&record.completed(Some(4))).is_err(), "completed before its issue");
}

#[test]
fn another_version_is_refused() {
    let mut other = file(&some());
    other[8] = 9;
    assert!(refused(other).contains("format version 9 is not supported, only 1"));
}

fn any_record() -> impl Strategy<Value = (u64, Option<u64>, usize, u64, u32, u16, u8)> {
    let completion = prop::option::of(0u64..1 << 40);
    (0u64..1 << 30, completion, 0usize..4, 0u64..1 << 50, 1u32.., 0u16..2, 0u8..32)
}

proptest! {
    #[test]
    fn records_round_trip(all in prop::collection::vec(any_record(), 0..200)) {
        let mut issue_ns = 0;
        let mut writer = NativeWriter::new(Vec::new(), &header()).unwrap();
        for name in ["a", "b"] {
            writer.device(&TraceDevice { name: name.into(), bytes: None }).unwrap();
        }
        let mut written = Vec::new();
        for (gap_ns, service_ns, operation, offset, bytes, device, flags) in all {
            // The first is at 0, because a reader starts there too.
            issue_ns += if written.is_empty() { 0 } else { gap_ns };
            let operation = Operation::ALL[operation];
            let bytes = if operation == Operation::Flush { 0 } else { bytes };
            let record = Record::new(issue_ns, operation, device, offset, bytes)
                .completed(service_ns.map(|ns| issue_ns + ns))
                .flagged(Flags::of_bits(flags).unwrap());
            writer.record(&record).unwrap();
            written.push(record);
        }
        let (records, _) = read(writer.finish(&corrections()).unwrap());
        prop_assert_eq!(records, written);
    }

    #[test]
    fn arbitrary_changes_never_panic(
        changes in prop::collection::vec((0usize..600, any::<u8>()), 1..8), cut in 0usize..700,
    ) {
        let mut bytes = file(&some());
        for (place, byte) in changes {
            if let Some(place) = bytes.get_mut(place) {
                *place = byte;
            }
        }
        bytes.truncate(cut);
        let hints = Hints { format: Some(Format::Native), ..Hints::default() };
        if let Ok((records, _)) = read_with(bytes, &hints) {
            prop_assert_eq!(records, some());
        }
    }
}
