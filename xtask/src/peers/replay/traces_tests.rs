//! Traces have the times, places and kinds that the tables say.

use super::*;

fn lines(trace: Trace) -> Vec<String> {
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_timed_trace_lasts_five_seconds() {
    for (trace, rate) in [(SLOW, 250), (MIDDLE, 2000), (FAST, 50_000)] {
        assert_eq!((trace.requests, trace.name.to_owned()), (rate * 5, format!("{rate}.iolog")));
        assert!((trace.span_seconds() - (5.0 - 1.0 / rate as f64)).abs() < 1e-9);
    }
    let lines = lines(SLOW);
    assert_eq!(lines[..3], ["fio version 3 iolog", "0 target add", "0 target open"]);
    assert!(lines[3].starts_with("0 target read ") && lines[3].ends_with(" 4096"), "{}", lines[3]);
    assert!(lines[1252].starts_with("4996000 target read "), "{}", lines[1252]);
    assert_eq!(lines[1253..], ["4996000 target close"], "the end of the file takes no time of its own");
}

#[test]
fn requests_lie_within_the_file_and_some_write() {
    let lines = lines(MIXED);
    let places = lines.iter().filter_map(|line| line.split(' ').nth(3)?.parse::<u64>().ok());
    let (low, high) = places.fold((u64::MAX, 0), |(low, high), at| (low.min(at), high.max(at)));
    assert!(high.is_multiple_of(REQUEST_BYTES) && high < FILE_BYTES, "{high}");
    assert!(low < FILE_BYTES / 100 && high > FILE_BYTES / 100 * 99, "{low} to {high}");
    let writes = lines.iter().filter(|line| line.contains(" write ")).count() as u64;
    assert!(writes.abs_diff(MIXED.requests * WRITES_PERCENT / 100) < MIXED.requests / 100, "{writes}");
}

#[test]
fn all_are_written() {
    let directory = tempfile::tempdir().unwrap();
    write_to(&directory.path().join(DEPENDENT), write_dependent).unwrap();
    let text = std::fs::read_to_string(directory.path().join(DEPENDENT)).unwrap();
    assert_eq!(text.lines().count() as u64, DEP_REQUESTS);
    assert!(text.lines().nth(1).unwrap().starts_with("132223104000001250,peers,0,Read,"));
    assert!((dependent_seconds() - 0.499_975).abs() < 1e-9);
    assert!(write_to(Path::new("/no/such/directory/x"), write_dependent).is_err());
}
