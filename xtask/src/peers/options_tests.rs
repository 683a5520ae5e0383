//! Which flags are taken, and what each does.

use super::*;

fn words(flags: &str) -> Vec<&str> {
    flags.split(' ').collect()
}

#[test]
fn without_flags_it_is_the_full_campaign() {
    let (options, bytes) = record(&[]).unwrap();
    assert_eq!((options.rounds, options.only.len(), &options.out), (5, 0, &None));
    assert_eq!(options.volume, PathBuf::from("keepup-data"));
    assert!(bytes <= 8_000_000_000 && bytes > 8_000_000_000 - UNIT_BYTES);
    let (same, disk) = disk(&[]).unwrap();
    assert_eq!(same, options);
    assert_eq!((disk.time, disk.file_bytes, disk.testdisk), (Duration::from_millis(500), 2 << 30, None));
}

#[test]
fn every_flag_counts() {
    let common = "--volume /v --pairs 7 --only volume,fio --out r.md";
    let expected = Options {
        volume: PathBuf::from("/v"),
        rounds: 7,
        only: vec!["volume".to_owned(), "fio".to_owned()],
        out: Some(PathBuf::from("r.md")),
    };
    let (options, bytes) = record(&words(&format!("{common} --gigabytes 0.5"))).unwrap();
    assert_eq!((options, bytes), (expected.clone(), 119 * UNIT_BYTES));
    let own = ["--time", "2 s", "--file", "200 MiB", "--testdisk", "/t"];
    let (options, disk) = disk(&[words(common), own.to_vec()].concat()).unwrap();
    assert_eq!(options, expected);
    let testdisk = Some(PathBuf::from("/t"));
    assert_eq!(disk, DiskOptions { time: Duration::from_secs(2), file_bytes: 256 << 20, testdisk });
}

#[test]
fn slips_are_named() {
    for (flags, named) in [
        (&["--pairs"][..], "--pairs"),
        (&["--pairs", "0"], "--pairs 0"),
        (&["--pairs", "two"], "--pairs two"),
        (&["--gigabytes", "0"], "--gigabytes 0"),
        (&["--gigabytes", "NaN"], "--gigabytes NaN"),
        (&["--time", "1 s"], "unknown flag --time"),
        (&["--fast", "1"], "unknown flag --fast"),
    ] {
        let why = record(flags).unwrap_err();
        assert!(why.starts_with(named), "{why}");
    }
    for (flags, named) in [
        (&["--time", "1 ms"][..], "--time 1 ms"),
        (&["--time", "long"], "\"long\""),
        (&["--file", "1 MiB"], "--file 1 MiB"),
        (&["--file", "big"], "\"big\""),
        (&["--gigabytes", "1"], "--gigabytes"),
    ] {
        let why = disk(flags).unwrap_err();
        assert!(why.contains(named), "{why}");
    }
}
