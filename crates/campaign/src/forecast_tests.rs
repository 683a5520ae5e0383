//! Forecasts add up.
use super::*;

fn forecast(volume: &str, written: u64, held: u64, seconds: Option<f64>) -> Forecast {
    let of = |bytes| BTreeMap::from([(volume.to_owned(), bytes)]);
    Forecast { seconds, ..Forecast::of_volumes(of(written), of(held)) }
}

#[test]
fn what_is_written_adds_up_and_what_is_held_does_not() {
    let mut whole = Forecast::default();
    whole.then(&forecast("a", 10, 5, Some(1.5)), 2);
    whole.then(&forecast("b", 7, 3, None), 1);
    whole.then(&forecast("a", 1, 9, Some(1.0)), 3);
    assert_eq!((whole.bytes_written, whole.seconds), (30, Some(6.0)));
    assert_eq!(whole.volume_bytes_written, BTreeMap::from([("a".into(), 23), ("b".into(), 7)]));
    assert_eq!(whole.space_bytes, BTreeMap::from([("a".into(), 9), ("b".into(), 3)]));
}

#[test]
fn the_same_directory_of_two_hosts_is_two_volumes() {
    let mut whole = Forecast::default();
    for host in ["daq1", "daq2"] {
        whole.then(&forecast("/data", 10, 5, None).on_host(host), 1);
    }
    let volumes = |bytes| BTreeMap::from(["daq1:/data", "daq2:/data"].map(|name| (name.to_owned(), bytes)));
    assert_eq!((whole.volume_bytes_written, whole.space_bytes), (volumes(10), volumes(5)));
}

#[test]
fn the_same_command_on_two_hosts_has_two_forecasts() {
    let text = "name = \"c\"\n[run]\nverb = \"disk sweep\"\n[axes]\nhost = [\"daq1\", \"daq2\"]";
    let cells = crate::parse(text, "c", &[]).unwrap().cells();
    let mut forecasts = Forecasts::default();
    forecasts.insert(&cells[0], forecast("a", 1, 1, None));
    assert_eq!((forecasts.of(&cells[0]).is_some(), forecasts.of(&cells[1])), (true, None));
}

#[test]
fn nothing_overflows() {
    let mut whole = forecast("a", u64::MAX, u64::MAX, None);
    whole.then(&forecast("a", u64::MAX, 1, None), 1000);
    assert_eq!((whole.bytes_written, whole.volume_bytes_written["a"]), (u64::MAX, u64::MAX));
    assert_eq!(whole.seconds, None);
}
