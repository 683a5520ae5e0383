//! Valid and invalid settings.
use std::collections::BTreeMap;

use super::*;

fn with_metadata(entries: &[(&str, &str)]) -> RunSettings {
    let metadata = entries.iter().map(|&(key, value)| (key.to_owned(), value.to_owned()));
    RunSettings { metadata: metadata.collect(), ..RunSettings::default() }
}

fn offer(volumes: &[&str]) -> RunOffer {
    RunOffer {
        volumes: volumes.iter().map(PathBuf::from).collect(),
        listen: ([127, 0, 0, 1], 0).into(),
        takes_commands: true,
    }
}

#[test]
fn metadata_has_limits() {
    let long = "v".repeat(METADATA_BYTES_MAX - 1);
    let key = "k".repeat(METADATA_KEY_BYTES_MAX);
    let good = [("sample", "quartz, 4 µm"), ("k", long.as_str()), (key.as_str(), ""), ("Größe", "a\nb\tc")];
    for good in good {
        check(&with_metadata(&[good])).unwrap();
    }
    let (key, value) = (format!("{key}k"), format!("{long}v"));
    for bad in
        [("", "x"), (key.as_str(), "x"), ("a\nb", "x"), ("a\0", "x"), ("k", value.as_str()), ("k", "\0")]
    {
        check(&with_metadata(&[bad])).unwrap_err();
    }
    let many = |n: usize| RunSettings {
        metadata: (0..n).map(|n| (n.to_string(), String::new())).collect::<BTreeMap<_, _>>(),
        ..RunSettings::default()
    };
    check(&many(METADATA_KEYS_MAX)).unwrap();
    check(&many(METADATA_KEYS_MAX + 1)).unwrap_err();
}

#[test]
fn limits_and_run_numbers_are_checked() {
    let stop = |stop| check(&RunSettings { stop, ..RunSettings::default() });
    let none = StopAfter::default();
    stop(StopAfter { events: Some(1), bytes: Some(1), seconds: Some(0.1) }).unwrap();
    stop(StopAfter { events: Some(0), ..none }).unwrap_err();
    stop(StopAfter { bytes: Some(0), ..none }).unwrap_err();
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        stop(StopAfter { seconds: Some(seconds), ..none }).unwrap_err();
    }
    let run = |run| check(&RunSettings { run: Some(run), ..RunSettings::default() });
    run(0).unwrap();
    run(RUN_MAX).unwrap();
    run(RUN_MAX + 1).unwrap_err();
}

#[test]
fn volumes_must_be_spelled_as_on_offer() {
    let offer = offer(&["/data/a", "/data/b"]);
    let ask = |asked: &[&str]| {
        let volumes = asked.iter().map(|&v| v.to_owned()).collect();
        volumes_of(RunSettings { volumes, ..RunSettings::default() }, &offer)
    };
    assert_eq!(ask(&[]).unwrap(), ["/data/a", "/data/b"]);
    assert_eq!(ask(&["/data/b"]).unwrap(), ["/data/b"]);
    for bad in ["/data", "/data/a/", "/data/./a", "/data/a/../b", "/etc", "", "a"] {
        let refused = ask(&[bad]).unwrap_err();
        assert!(refused.contains("not one of this recorder's volumes"), "{refused}");
    }
    assert!(ask(&["/data/a", "/data/a"]).unwrap_err().contains("twice"));
}

fn volumes_of(settings: RunSettings, offer: &RunOffer) -> Result<Vec<String>, String> {
    let found = volumes(&settings, offer).map_err(|why| why.to_text());
    found.map(|v| v.iter().map(|v| v.display().to_string()).collect())
}

#[test]
fn without_volumes_run_numbers_start_at_one() {
    assert_eq!(number(None, &[]).unwrap(), 1);
    assert_eq!(number(Some(0), &[]).unwrap(), 0);
}

#[test]
fn the_first_limit_that_is_reached_ends_a_run() {
    let stop = StopAfter { events: Some(10), bytes: Some(1000), seconds: Some(1.5) };
    assert_eq!(reached(&stop, 9, 999, 1.4), None);
    assert_eq!(reached(&stop, 10, 0, 0.0).unwrap(), "10 events");
    assert_eq!(reached(&stop, 9, 1001, 0.0).unwrap(), "1000 bytes");
    assert_eq!(reached(&stop, 0, 0, 1.5).unwrap(), "1.5 s");
    assert_eq!(reached(&StopAfter::default(), u64::MAX, u64::MAX, 1e9), None);
}
