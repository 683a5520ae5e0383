//! Pass band, stop band and sample positions of the filter.
use super::super::tests::reduced;
use super::*;
use keepup_plan::Element;

const ROW: usize = 4096;

fn decimated(by: usize, samples: impl Fn(usize) -> f32) -> Vec<f32> {
    let event: Vec<u8> = (0..ROW).flat_map(|index| samples(index).to_le_bytes()).collect();
    let made = reduced(&format!("decimate by={by}"), Element::F32, &[ROW as u64], &event);
    assert_eq!(made.len(), ROW / by * 4);
    made.chunks_exact(4).map(f32::get).collect()
}

/// A tone with this many cycles per sample.
fn tone(frequency: f64) -> impl Fn(usize) -> f32 {
    move |index| (2.0 * PI * frequency * index as f64).sin() as f32
}

/// Root mean square, away from the ends of the row.
fn strength(samples: &[f32]) -> f64 {
    let middle = &samples[samples.len() / 4..samples.len() * 3 / 4];
    (middle.iter().map(|&s| f64::from(s).powi(2)).sum::<f64>() / middle.len() as f64).sqrt()
}

#[test]
fn slow_tones_pass_unshifted_and_fast_ones_do_not_alias() {
    for by in [2, 4, 8, 16] {
        let rate = 1.0 / by as f64;
        let slow = decimated(by, tone(0.2 * rate));
        let shifted = |index: usize| f64::from(slow[index]) - (2.0 * PI * 0.2 * index as f64).sin();
        let off = (slow.len() / 4..slow.len() * 3 / 4).map(|index| shifted(index).abs());
        assert!(off.fold(0.0, f64::max) < 0.01, "by {by}");
        for fast in [0.51 * rate, 0.7 * rate, 0.49] {
            let left = strength(&decimated(by, tone(fast))) / strength(&decimated(by, tone(0.2 * rate)));
            assert!(left < 0.005, "by {by}: {left} of a tone of {fast} remains");
        }
    }
}

#[test]
fn a_constant_is_kept_to_the_ends_and_integers_saturate() {
    assert!(decimated(8, |_| 3.0).iter().all(|sample| (sample - 3.0).abs() < 1e-5));
    // A step between the extremes overshoots and is clipped there.
    let step = |least: i16, most: i16| {
        let samples = (0..256).flat_map(|index| if index < 128 { least } else { most }.to_le_bytes());
        let made = reduced("decimate by=2", Element::I16, &[256], &samples.collect::<Vec<u8>>());
        made.chunks_exact(2).map(i16::get).collect::<Vec<_>>()
    };
    let made = step(i16::MIN, i16::MAX);
    assert_eq!((made[0], made[127]), (i16::MIN, i16::MAX));
    assert!(made[..60].iter().all(|&sample| sample < -30_000), "{made:?}");
    assert!(made[68..].iter().all(|&sample| sample > 30_000), "{made:?}");
}

#[test]
fn rows_are_independent_and_match_the_plain_sum() {
    let (row, by) = (24usize, 3usize);
    let sample = |index: usize| ((index * 7919) % 1000) as f64;
    let event: Vec<u8> = (0..2 * row).flat_map(|index| sample(index).to_le_bytes()).collect();
    let made = reduced("decimate by=3", Element::F64, &[2, row as u64], &event);
    let made: Vec<f64> = made.chunks_exact(8).map(f64::get).collect();
    let taps = taps(by);
    assert!((taps.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    for (index, found) in made.iter().enumerate() {
        let (line, place) = (index / (row / by), index % (row / by));
        let reach = (REACH * by) as i64;
        let at = |tap: usize| ((place * by + tap) as i64 - reach).clamp(0, row as i64 - 1) as usize;
        let expected: f64 = (0..taps.len()).map(|tap| taps[tap] * sample(line * row + at(tap))).sum();
        assert!((found - expected).abs() < 1e-9, "{index}: {found} is not {expected}");
    }
}
