//! Values of the flags of a run.
use super::*;

#[test]
fn limits_are_events_bytes_or_time() {
    assert_eq!(limit("1000000 events").unwrap(), Limit::Events(1_000_000));
    assert_eq!(limit("1 event").unwrap(), Limit::Events(1));
    assert_eq!(limit("500 GB").unwrap(), Limit::Bytes(500_000_000_000));
    assert_eq!(limit("2 h").unwrap(), Limit::Seconds(7200.0));
    for bad in ["", "5", "many events", "-1 events", "1.5 events", "0 events", "0 B", "0 s", "5 parsecs"] {
        assert!(limit(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_value_given_twice_is_refused() {
    let flags = |meta: &[&str], stop: &[&str]| RunFlags {
        run: Some(3),
        meta: meta.iter().map(|text| entry(text).unwrap()).collect(),
        stop_after: stop.iter().map(|text| limit(text).unwrap()).collect(),
    };
    let settings = flags(&["sample=a=b", "note="], &["5 events", "1 GB"]).settings().unwrap();
    assert_eq!(settings.metadata["sample"], "a=b");
    assert_eq!(settings.metadata["note"], "");
    assert_eq!(
        (settings.run, settings.stop.events, settings.stop.bytes),
        (Some(3), Some(5), Some(1_000_000_000))
    );
    assert_eq!(settings.stop.seconds, None);
    assert!(flags(&["a=1", "a=2"], &[]).settings().is_err());
    assert!(flags(&[], &["5 events", "6 events"]).settings().is_err());
    assert!(entry("sample").is_err() && entry("=x").is_err());
}
