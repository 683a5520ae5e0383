//! What is read out of iperf3's JSON.

use super::*;

#[test]
fn the_servers_count_is_taken() {
    let json = r#"{"start": {}, "end": {
        "sum_sent": {"seconds": 6.007625, "bytes": 2147483648, "bits_per_second": 2859677357.358357},
        "sum_received": {"seconds": 6.008403, "bytes": 2141847446, "bits_per_second": 2851802645.062257}}}"#;
    let (bytes, rate) = received(json).unwrap();
    assert_eq!(bytes, 2_141_847_446);
    assert!((rate - 2_851_802_645.0 / 8.0).abs() < 1.0, "{rate}");
}

#[test]
fn failures_are_told() {
    let error = received(r#"{"end": {}, "error": "unable to connect"}"#).unwrap_err().to_string();
    assert!(error.contains("unable to connect"), "{error}");
    assert!(received(r#"{"end": {}}"#).is_err());
    assert!(received("iperf3: no").is_err());
}
