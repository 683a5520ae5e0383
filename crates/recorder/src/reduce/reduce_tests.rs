//! Steps and chains of steps compared with plain arithmetic.
use proptest::prelude::*;

use keepup_plan::reduction::Reduction;

use super::*;

/// Result of the reduction `text` for `event`.
pub(super) fn reduced(text: &str, element: Element, shape: &[u64], event: &[u8]) -> Vec<u8> {
    let reduction: Reduction = text.parse().unwrap();
    let input = Samples { element, shape: shape.to_vec(), compressed: false };
    let mut chain = Chain::new(&reduction.steps, &input).unwrap();
    let mut output = vec![0; chain.output_bytes_max()];
    let first = chain.run(event, &mut output).unwrap();
    let once = output[..first].to_vec();
    // The result must not depend on the output's previous content.
    output.fill(0xa5);
    assert_eq!(chain.run(event, &mut output), Some(first));
    assert_eq!(output[..first], once);
    once
}

fn bytes_of<T: sample::Sample>(samples: &[T]) -> Vec<u8> {
    let mut bytes = vec![0; samples.len() * T::BYTES];
    samples.iter().zip(bytes.chunks_exact_mut(T::BYTES)).for_each(|(sample, to)| sample.put(to));
    bytes
}

fn samples_of<T: sample::Sample>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::BYTES).map(T::get).collect()
}

/// Textbook sum in double precision.
fn periodogram(samples: &[f64], weights: &[f64]) -> Vec<f64> {
    let count = samples.len();
    let scale: f64 = weights.iter().map(|w| w * w).sum();
    let power = |bin: usize| {
        let (mut re, mut im) = (0.0, 0.0);
        for (index, (sample, weight)) in samples.iter().zip(weights).enumerate() {
            let angle = -2.0 * std::f64::consts::PI * ((bin * index) % count) as f64 / count as f64;
            re += sample * weight * angle.cos();
            im += sample * weight * angle.sin();
        }
        (re * re + im * im) / scale
    };
    (0..=count / 2).map(power).collect()
}

fn assert_near(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(1e-30f64, |largest, value| largest.max(*value));
    for (found, expected) in found.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() <= 1e-5 * largest, "{found} is not {expected}");
    }
}

proptest! {
    #[test]
    fn a_spectrum_matches_the_textbook_sum(
        rows in proptest::collection::vec(any::<i16>(), 2..200),
        hann in any::<bool>(),
    ) {
        let count = rows.len();
        let text = if hann { "spectrum window=hann" } else { "spectrum" };
        let found = reduced(text, Element::I16, &[1, count as u64], &bytes_of(&rows));
        let weight = |n: usize| {
            if hann { (std::f64::consts::PI * n as f64 / count as f64).sin().powi(2) } else { 1.0 }
        };
        let weights: Vec<f64> = (0..count).map(weight).collect();
        let samples: Vec<f64> = rows.iter().map(|&sample| f64::from(sample)).collect();
        assert_near(&samples_of::<f32>(&found), &periodogram(&samples, &weights));
    }

    #[test]
    fn rows_are_cut_at_the_given_size(row in proptest::collection::vec(any::<u8>(), 48)) {
        let found = samples_of::<f32>(&reduced("spectrum size=16", Element::U8, &[48], &row));
        let samples: Vec<f64> = row.iter().map(|&sample| f64::from(sample)).collect();
        for (found, samples) in found.chunks_exact(9).zip(samples.chunks_exact(16)) {
            assert_near(found, &periodogram(samples, &[1.0; 16]));
        }
        prop_assert_eq!(found.len(), 27);
    }

    #[test]
    fn bins_are_sums(event in proptest::collection::vec(any::<u8>(), 2 * 6 * 8)) {
        let found = samples_of::<u16>(&reduced("bin by=3x4", Element::U8, &[2, 6, 8], &event));
        let at = |plane: usize, row: usize, column: usize| u16::from(event[(plane * 6 + row) * 8 + column]);
        let mut expected: Vec<u16> = Vec::new();
        for (plane, row, column) in
            (0..2).flat_map(|p| (0..2).flat_map(move |r| (0..2).map(move |c| (p, r, c))))
        {
            let cells = (0..3).flat_map(|r| (0..4).map(move |c| (r, c)));
            expected.push(cells.map(|(r, c)| at(plane, row * 3 + r, column * 4 + c)).sum());
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn samples_below_the_threshold_are_zero(
        event in proptest::collection::vec(any::<i32>(), 1..50),
        at in -1_000_000_000..1_000_000_000i32,
    ) {
        let text = format!("threshold at={}", f64::from(at) - 0.5);
        let found = reduced(&text, Element::I32, &[event.len() as u64], &bytes_of(&event));
        let expected: Vec<i32> = event.iter().map(|&s| if s < at { 0 } else { s }).collect();
        prop_assert_eq!(samples_of::<i32>(&found), expected);
    }
}

#[test]
fn extreme_samples_are_summed_without_overflow() {
    for (element, event, expected) in [
        (Element::U8, bytes_of(&[u8::MAX; 256]), i128::from(u8::MAX) * 256),
        (Element::I8, bytes_of(&[i8::MIN; 256]), i128::from(i8::MIN) * 256),
        (Element::U16, bytes_of(&[u16::MAX; 256]), i128::from(u16::MAX) * 256),
        (Element::I16, bytes_of(&[i16::MIN; 256]), i128::from(i16::MIN) * 256),
        (Element::U32, bytes_of(&[u32::MAX; 256]), i128::from(u32::MAX) * 256),
        (Element::I32, bytes_of(&[i32::MIN; 256]), i128::from(i32::MIN) * 256),
    ] {
        let sum = reduced("bin by=256", element, &[256], &event);
        let mut wide = [if expected < 0 { 0xff } else { 0 }; 16];
        wide[..sum.len()].copy_from_slice(&sum);
        assert_eq!(i128::from_le_bytes(wide), expected, "{element}");
    }
    let doubles = reduced("bin by=2", Element::F32, &[2], &bytes_of(&[f32::MAX, f32::MAX]));
    assert_eq!(samples_of::<f64>(&doubles), [2.0 * f64::from(f32::MAX)]);
}

#[test]
fn nan_samples_stay_and_thresholds_are_exact() {
    let event = bytes_of(&[f32::NAN, 0.1, 0.1f32.next_down(), -1.0]);
    let found = samples_of::<f32>(&reduced("threshold at=0.1", Element::F32, &[4], &event));
    // 0.1 in single precision is slightly above 0.1 in double precision; the next smaller number
    // is below.
    assert!(found[0].is_nan());
    assert_eq!(found[1..], [0.1, 0.0, 0.0]);
    let large = [u64::MAX, 1 << 63, (1 << 63) - 1];
    let found = reduced("threshold at=9223372036854775808", Element::U64, &[3], &bytes_of(&large));
    assert_eq!(samples_of::<u64>(&found), [u64::MAX, 1 << 63, 0]);
}

#[test]
fn steps_are_chained() {
    let event: Vec<u8> = (0..=255).collect();
    let found = reduced("bin by=2 | bin by=2 | threshold at=600 | bin by=2", Element::U8, &[256], &event);
    let sums: Vec<u64> = event.chunks(4).map(|four| four.iter().map(|&s| u64::from(s)).sum()).collect();
    let kept: Vec<u64> = sums.iter().map(|&sum| if sum < 600 { 0 } else { sum }).collect();
    let expected: Vec<u64> = kept.chunks(2).map(|two| two.iter().sum()).collect();
    assert_eq!(samples_of::<u64>(&found), expected);
}

#[test]
fn an_event_of_another_length_and_a_short_output_are_refused() {
    for text in ["spectrum", "decimate by=2", "bin by=2", "threshold at=1", "lz4", "bin by=2 | lz4"] {
        let reduction: Reduction = text.parse().unwrap();
        let input = Samples { element: Element::U16, shape: vec![8], compressed: false };
        let mut chain = Chain::new(&reduction.steps, &input).unwrap();
        let mut output = vec![0; chain.output_bytes_max()];
        assert!(chain.run(&[1; 16], &mut output).is_some(), "{text}");
        assert_eq!(chain.run(&[1; 15], &mut output), None, "{text}");
        assert_eq!(chain.run(&[1; 18], &mut output), None, "{text}");
        assert_eq!(chain.run(&[1; 16], &mut output[..3]), None, "{text}");
    }
}

#[test]
fn stored_sizes_are_known_beforehand() {
    let reductions: Vec<Reduction> =
        ["streams=0: bin by=4", "streams=1 keep=both: spectrum", "streams=2: lz4", "streams=3: bin by=3"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
    let stored = |id: u32| {
        let (element, shape) = (ElementType::I16, vec![64]);
        let info = StreamInfo { id, name: "s".into(), element, shape, compression: None };
        stored_bytes_max(&reductions, &info, 128)
    };
    assert_eq!((stored(0), stored(1)), (16 * 4, 128 + 33 * 4));
    assert!(stored(2) >= 128 + 16 && stored(2) < 300, "LZ4 may make it longer");
    assert_eq!((stored(3), stored(4)), (128, 128), "refused, and without a reduction");
}
