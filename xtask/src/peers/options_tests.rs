//! Which flags are taken, and what each does.

use super::*;

#[test]
fn without_flags_it_is_the_full_campaign() {
    let options = parse(&[]).unwrap();
    assert_eq!((options.rounds, options.only.len(), options.out), (5, 0, None));
    assert_eq!(options.volume, PathBuf::from("keepup-data"));
    assert!(options.bytes <= 8_000_000_000 && options.bytes > 8_000_000_000 - UNIT_BYTES);
}

#[test]
fn every_flag_counts() {
    let flags = "--volume /v --pairs 7 --gigabytes 0.5 --only volume,fio --out r.md";
    let options = parse(&flags.split(' ').collect::<Vec<_>>()).unwrap();
    assert_eq!(
        options,
        Options {
            volume: PathBuf::from("/v"),
            rounds: 7,
            bytes: 119 * UNIT_BYTES,
            only: vec!["volume".to_owned(), "fio".to_owned()],
            out: Some(PathBuf::from("r.md")),
        }
    );
}

#[test]
fn slips_are_named() {
    for (flags, named) in [
        (&["--pairs"][..], "--pairs"),
        (&["--pairs", "0"], "--pairs 0"),
        (&["--pairs", "two"], "--pairs two"),
        (&["--gigabytes", "0"], "--gigabytes 0"),
        (&["--gigabytes", "NaN"], "--gigabytes NaN"),
        (&["--fast", "1"], "--fast"),
    ] {
        let why = parse(flags).unwrap_err();
        assert!(why.starts_with(named), "{why}");
    }
}
