//! Speed and memory of reading: `cargo test --release -p keepup-trace speed -- --ignored --nocapture`,
//! with `KEEPUP_TRACE_RECORDS` requests (default 10 million) in `KEEPUP_TRACE_DIR` (default a temporary
//! directory).
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{Hints, Record, Trace, convert, describe, target_for};

fn records() -> u64 {
    std::env::var("KEEPUP_TRACE_RECORDS").map_or(10_000_000, |text| text.parse().unwrap())
}

/// A reproducible pseudo-random address.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 36
}

/// Writes a blktrace file with a queue event and a completion per request, and a few requests in flight.
fn blktrace(path: &Path, requests: u64) {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    let mut event = |time: u64, sector: u64, action: u32| {
        let mut bytes = [0; 48];
        bytes[..4].copy_from_slice(&0x6561_7407u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&time.to_le_bytes());
        bytes[16..24].copy_from_slice(&sector.to_le_bytes());
        bytes[24..28].copy_from_slice(&4096u32.to_le_bytes());
        bytes[28..32].copy_from_slice(&action.to_le_bytes());
        bytes[36..40].copy_from_slice(&(8u32 << 20).to_le_bytes());
        out.write_all(&bytes).unwrap();
    };
    const UNDER_WAY: u64 = 16;
    for n in 0..requests + UNDER_WAY {
        if n < requests {
            event(n * 1000, scattered(n) * 8, 1 | 1 << 20 | 1 << 16);
        }
        if n >= UNDER_WAY {
            event(n * 1000 + 500, scattered(n - UNDER_WAY) * 8, 8 | 1 << 23 | 1 << 16);
        }
    }
}

fn text(path: &Path, requests: u64, line: &dyn Fn(&mut BufWriter<File>, u64) -> std::io::Result<()>) {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    for n in 0..requests {
        line(&mut out, n).unwrap();
    }
}

/// Peak memory of this process, MB.
fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1000
}

fn read(path: &Path) -> u64 {
    let mut trace = Trace::open(&[path.to_owned()], &Hints::default(), None).unwrap();
    let (mut records, mut count, mut sum): (Vec<Record>, u64, u64) = (Vec::new(), 0, 0);
    loop {
        let has_more = trace.fill(&mut records).unwrap();
        count += records.len() as u64;
        sum = records.iter().fold(sum, |sum, record| sum.wrapping_add(record.offset));
        records.clear();
        if !has_more {
            assert_ne!(sum, 1);
            return count;
        }
    }
}

fn made(directory: &Path) -> Vec<PathBuf> {
    let requests = records();
    let path = |name: &str| directory.join(name);
    if !path("x.blktrace").exists() {
        blktrace(&path("x.blktrace"), requests);
        text(&path("msr.csv"), requests, &|out, n| {
            writeln!(
                out,
                "{},hm,1,Read,{},4096,{}",
                128_166_372_003_061_629 + n * 10,
                scattered(n) * 4096,
                413
            )
        });
        text(&path("alibaba.csv"), requests, &|out, n| {
            writeln!(out, "419,W,{},4096,{}", scattered(n) * 4096, 1_577_808_144_360_767 + n)
        });
        text(&path("spc.csv"), requests, &|out, n| {
            writeln!(out, "0,{},4096,W,{}.{:06}", scattered(n) * 8, n / 1_000_000, n % 1_000_000)
        });
        let mut trace = Trace::open(&[path("x.blktrace")], &Hints::default(), None).unwrap();
        convert(&mut trace, target_for(&path("x.trace")), &path("x.trace")).unwrap();
        convert(
            &mut Trace::open(&[path("x.trace")], &Hints::default(), None).unwrap(),
            target_for(&path("x.iolog")),
            &path("x.iolog"),
        )
        .unwrap();
    }
    ["x.trace", "x.blktrace", "msr.csv", "alibaba.csv", "spc.csv", "x.iolog"].map(path).to_vec()
}

#[test]
#[ignore = "takes minutes and gigabytes"]
fn rates() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = std::env::var("KEEPUP_TRACE_DIR").map_or(temporary.path().to_owned(), PathBuf::from);
    let only = std::env::var("KEEPUP_TRACE_ONLY").ok();
    for path in made(&directory) {
        if only.as_ref().is_some_and(|only| !path.to_string_lossy().contains(only)) {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for round in 0..3 {
            let begin = Instant::now();
            let count = read(&path);
            assert_eq!(count, records());
            let read_s = begin.elapsed().as_secs_f64();
            let begin = Instant::now();
            let mut trace = Trace::open(std::slice::from_ref(&path), &Hints::default(), None).unwrap();
            let info = describe(&mut trace).unwrap();
            assert_eq!(info.whole.records, count);
            let info_s = begin.elapsed().as_secs_f64();
            let million = count as f64 / 1e6;
            println!(
                "{name} round {round}: read {:.2} M/s, info {:.2} M/s, memory at most {} MB",
                million / read_s,
                million / info_s,
                memory_mb()
            );
        }
    }
}
