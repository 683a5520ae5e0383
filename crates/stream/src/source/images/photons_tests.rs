//! Counts have the moments of the Poisson distribution.
use super::*;

fn pixels(brightness: Brightness, pixel_bytes: usize) -> Vec<f64> {
    let mut bytes = vec![0; 200_000 * pixel_bytes];
    Photons::new(brightness).fill(&mut fastrand::Rng::with_seed(3), &mut bytes, pixel_bytes);
    let value = |pixel: &[u8]| pixel.iter().rev().fold(0u32, |value, byte| value << 8 | u32::from(*byte));
    bytes.chunks(pixel_bytes).map(|pixel| f64::from(value(pixel))).collect()
}

#[test]
fn mean_and_variance_are_the_brightness() {
    for pixel_bytes in [1, 2, 4] {
        for brightness in Brightness::levels(pixel_bytes) {
            let Brightness::Mean(mean) = brightness else { continue };
            let counts = pixels(brightness, pixel_bytes);
            let number = counts.len() as f64;
            let found = counts.iter().sum::<f64>() / number;
            let variance = counts.iter().map(|count| (count - found).powi(2)).sum::<f64>() / number;
            // Five standard errors.
            assert!((found - mean).abs() < 5.0 * (mean / number).sqrt(), "{brightness:?}: {found}");
            assert!(
                (variance / mean - 1.0).abs() < 0.02 + 5.0 / (mean * number).sqrt(),
                "{brightness:?}: {variance}"
            );
        }
    }
}

#[test]
fn dark_pixels_are_zero_and_noise_has_all_values() {
    assert!(pixels(Brightness::Dark, 2).iter().all(|count| *count == 0.0));
    let noise = pixels(Brightness::Noise, 2);
    let mean = noise.iter().sum::<f64>() / noise.len() as f64;
    assert!((mean / 32_767.5 - 1.0).abs() < 0.01, "{mean}");
    assert!(noise.iter().any(|count| *count > 65_000.0) && noise.iter().any(|count| *count < 500.0));
}

#[test]
fn counts_of_8_bits_do_not_wrap() {
    let brightest = Brightness::levels(1).filter(|level| *level != Brightness::Noise).last().unwrap();
    let counts = pixels(brightest, 1);
    assert!(counts.iter().all(|count| (1.0..=200.0).contains(count)), "{brightest:?}");
}
