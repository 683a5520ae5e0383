//! Analysis of traces with known results.
use super::*;
use crate::trace::tests::read_with;
use crate::{Hints, Trace};

fn info(text: &str) -> TraceInfo {
    describe(&mut Trace::from_bytes("made", text.into(), &Hints::default(), None).unwrap()).unwrap()
}

/// MSR rows of one host: disk, time in us, operation, offset, bytes, response in us.
fn rows(all: &[(u32, u64, &str, u64, u64, u64)]) -> String {
    let row = |(disk, us, kind, offset, bytes, response): &(u32, u64, &str, u64, u64, u64)| {
        format!("{},h,{disk},{kind},{offset},{bytes},{}\n", 1_000_000 + us * 10, response * 10)
    };
    all.iter().map(row).collect()
}

#[test]
fn operations_sizes_times_and_offsets_are_analyzed() {
    let info = info(&rows(&[
        (0, 0, "Read", 0, 4096, 100),
        (0, 100, "Read", 4096, 4096, 100),
        (0, 200, "Write", 1 << 30, 8192, 1000),
        (0, 300, "Write", (1 << 30) + 8192, 512, 500),
        (0, 1000, "Read", 0, 4096, 100),
    ]));
    let whole = &info.whole;
    assert_eq!((whole.records, whole.bytes, whole.end_bytes), (5, 20_992, (1 << 30) + 8704));
    let part = |operation, records, bytes| OperationInfo { operation, records, bytes };
    assert_eq!(whole.operations, [part(Operation::Read, 3, 12_288), part(Operation::Write, 2, 8704)]);
    let mix = whole.detail.as_ref().unwrap();
    let sizes: Vec<_> = mix.sizes.iter().map(|c| (c.from_bytes, c.records, c.bytes)).collect();
    assert_eq!(sizes, [(512, 1, 512), (4096, 3, 12_288), (8192, 1, 8192)]);
    assert_eq!((mix.last_ns, mix.rate, mix.gap_max_ns), (1_000_000, Some(4000.0), 700_000));
    assert_eq!(mix.gaps.unwrap().p50_ns, 100_031);
    // 100 + 100 + 1000 + 500 + 100 us over 1200 us; at 1000 us the third and the last request are in flight.
    let outstanding = mix.outstanding.as_ref().unwrap();
    assert_eq!((outstanding.peak, outstanding.mean), (2, Some(1.5)));
    // Two pages, two pages and one page; the first page is accessed twice.
    assert_eq!((whole.footprint_bytes, whole.footprint_page_bytes), (5 * 4096, 4096));
    let jumps = whole.jumps.as_ref().unwrap();
    assert_eq!((jumps.records, jumps.sequential, jumps.in_streams, jumps.random), (4, 2, 2, 2));
    assert_eq!(jumps.median_jump_bytes, Some(1 << 30));
    assert_eq!(info.devices.len(), 1);
    assert_eq!(info.devices[0].detail.as_ref().unwrap().last_ns, 1_000_000);
}

#[test]
fn each_device_has_its_own_statistics() {
    let mut all = Vec::new();
    for n in 0..10 {
        all.push((3, n * 100, "Read", n * 4096, 4096, 150));
        all.push((1, n * 100 + 50, "Write", n * 1_000_000, 512, 10));
    }
    let info = info(&rows(&all));
    let jumps: Vec<_> = info.devices.iter().map(|d| d.jumps.as_ref().unwrap().sequential).collect();
    assert_eq!(jumps, [9, 0]);
    // Sequential access is detected per device, although the devices alternate.
    assert_eq!(info.whole.jumps.as_ref().unwrap().sequential, 9);
    let mixes: Vec<_> = info.devices.iter().map(|d| d.detail.as_ref().unwrap()).collect();
    assert_eq!((mixes[0].rate, mixes[0].first_ns, mixes[1].first_ns), (Some(10_000.0), 0, 50_000));
    let peaks: Vec<_> = mixes.iter().map(|mix| mix.outstanding.as_ref().unwrap().peak).collect();
    assert_eq!(peaks, [2, 1]);
    assert_eq!(info.whole.footprint_bytes, info.devices.iter().map(|d| d.footprint_bytes).sum::<u64>());
    assert_eq!(info.devices[0].name.as_deref(), Some("h.3"));
}

#[test]
fn interleaved_streams_are_detected() {
    let mut all = Vec::new();
    for n in 0..100 {
        for stream in 0..8 {
            all.push((0, (n * 8 + stream) * 10, "Read", (stream << 30) + n * 65_536, 65_536, 1));
        }
    }
    let jumps = info(&rows(&all)).whole.jumps.unwrap();
    assert_eq!((jumps.records, jumps.sequential, jumps.in_streams, jumps.random), (799, 0, 792, 7));
}

#[test]
fn devices_beyond_the_limit_have_totals_only() {
    let all: Vec<_> = (0..100).map(|n| (n, u64::from(n), "Read", 0, 512, 1)).collect();
    let info = info(&rows(&all));
    let described = info.devices.iter().filter(|device| device.detail.is_some()).count();
    assert_eq!((info.devices.len(), described), (100, DETAILED_MAX));
    assert!(info.devices.iter().all(|device| device.records == 1 && device.jumps.is_none()));
    assert_eq!(info.whole.detail.as_ref().unwrap().outstanding.as_ref().unwrap().peak, 1);
}

#[test]
fn unknown_values_are_null() {
    let info = info("0,8,512,R,0.5\n");
    let mix = info.whole.detail.as_ref().unwrap();
    assert!(mix.rate.is_none() && mix.gaps.is_none() && mix.service.is_none() && mix.outstanding.is_none());
    let (_, mut empty) = read_with("fio version 3 iolog\n", &Hints::default()).unwrap();
    let info = describe(&mut empty).unwrap();
    assert!(info.whole.detail.is_none() && info.whole.jumps.is_none() && info.devices.is_empty());
    assert_eq!(info.whole.records, 0);
}
