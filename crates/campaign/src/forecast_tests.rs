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
fn nothing_overflows() {
    let mut whole = forecast("a", u64::MAX, u64::MAX, None);
    whole.then(&forecast("a", u64::MAX, 1, None), 1000);
    assert_eq!((whole.bytes_written, whole.volume_bytes_written["a"]), (u64::MAX, u64::MAX));
    assert_eq!(whole.seconds, None);
}
