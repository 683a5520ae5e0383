//! What was written while the source sent.
use super::*;

/// One sample every 100 ms, with these MB written.
fn samples(written: &[u64]) -> Vec<Sample> {
    let at = |(index, mb): (usize, &u64)| Sample {
        t_s: 0.1 * index as f64,
        written_bytes: mb * 1_000_000,
        ..Sample::default()
    };
    written.iter().enumerate().map(at).collect()
}

#[test]
fn the_written_rate_leaves_out_the_start_and_the_end() {
    // Nothing for 200 ms, then 80 MB every 100 ms; the source ends after 700 ms.
    let found = samples(&[0, 0, 8, 88, 168, 248, 328, 408, 420, 420]);
    assert!((written_rate(&found, 0.71).unwrap() / 800e6 - 1.0).abs() < 1e-9);
    // A stall counts.
    let stalled = samples(&[0, 0, 8, 88, 88, 88, 328, 408]);
    assert!((written_rate(&stalled, 0.71).unwrap() / 800e6 - 1.0).abs() < 1e-9);
    assert_eq!(written_rate(&samples(&[0, 0, 8]), 1.0), None);
    assert_eq!(written_rate(&[], 1.0), None);
}
