//! Images decompress to plausible counts, have the sizes that were promised, and differ from each other.
use std::collections::BTreeSet;
use std::time::Duration;

use super::super::plan::{DectrisVersion, Protocol, Rate};
use super::*;
use crate::bslz4::tests::decompressed;
use crate::wire::ElementType;

fn plan(element: ElementType, shape: &[u64], size: EventSize) -> SourcePlan {
    SourcePlan {
        element,
        shape: shape.to_vec(),
        compressed: true,
        protocol: Protocol::Dectris(DectrisVersion::V2),
        duration: Some(Duration::from_secs(1)),
        ..SourcePlan::new(size, Rate::Max)
    }
}

fn images(plan: &SourcePlan) -> Images {
    plan.check().unwrap();
    Images::new(plan).unwrap()
}

/// Image `sequence`, as the pieces give it.
fn image(images: &mut Images, sequence: u64) -> Vec<u8> {
    let bytes = images.sizes().bytes(0, sequence);
    let event = Event { slot: 0, stream: 0, sequence, due_ns: 0, bytes };
    let mut image = images.header().to_vec();
    while (image.len() as u64) < bytes {
        let piece = images.piece(&event, image.len() as u64);
        assert!(!piece.is_empty() && piece.len() <= PIECE_BYTES);
        image.extend_from_slice(piece);
    }
    assert_eq!(image.len() as u64, bytes);
    image
}

/// Counts of the pixels of a compressed image.
fn counts(image: &[u8], pixel_bytes: usize) -> Vec<u64> {
    let value = |pixel: &[u8]| pixel.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    decompressed(image, pixel_bytes).chunks(pixel_bytes).map(value).collect()
}

#[test]
fn images_decompress_to_counts_of_about_one_brightness() {
    // With and without pixels behind the last whole block, and behind the last eight.
    for (element, shape) in [
        (ElementType::U8, [300u64, 401]),
        (ElementType::U16, [512, 512]),
        (ElementType::U16, [515, 515]),
        (ElementType::U32, [211, 307]),
    ] {
        let bytes = shape[0] * shape[1] * element.bytes();
        let size = EventSize::Uniform { min: bytes / 10, max: bytes / 5 };
        let mut images = images(&plan(element, &shape, size));
        for sequence in [0, 1, 1000, u64::MAX - 1] {
            let image = image(&mut images, sequence);
            let counts = counts(&image, element.bytes() as usize);
            assert_eq!(counts.len() as u64, shape[0] * shape[1]);
            let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
            let highest = *counts.iter().max().unwrap() as f64;
            assert!((0.01..100.0).contains(&mean), "{element} {shape:?}: mean {mean}");
            assert!(highest < 6.0 * mean + 20.0, "{element} {shape:?}: mean {mean}, highest {highest}");
        }
    }
}

#[test]
fn sizes_are_those_drawn_less_a_part_of_a_block() {
    let size = EventSize::Uniform { min: 3_620_000, max: 12_100_000 };
    let plan = plan(ElementType::U16, &[4362, 4148], size);
    let images = images(&plan);
    let mut sum = (0, 0);
    for sequence in 0..5000 {
        let (drawn, bytes) = (size.bytes(plan.seed, 0, sequence), images.sizes().bytes(0, sequence));
        assert!(bytes <= drawn && drawn - bytes < 1500, "event {sequence}: {bytes} of {drawn} bytes");
        sum = (sum.0 + drawn, sum.1 + bytes);
    }
    assert!(sum.1 as f64 / sum.0 as f64 > 0.9999, "{sum:?}");
    let memory: usize = images.runs.iter().map(|run| run.bytes.capacity() + run.tail.capacity()).sum();
    assert!(memory < 8 << 20 && images.runs.len() < 11, "{memory} bytes for {} runs", images.runs.len());
    // Neighbouring images have neighbouring brightnesses.
    assert!(images.sizes.runs.windows(2).all(|pair| pair[0].bytes(4417) < pair[1].bytes(4417)));
}

#[test]
fn any_size_that_the_plan_allows_can_be_reached() {
    for (element, shape) in
        [(ElementType::U8, [64u64, 128]), (ElementType::U16, [100, 1003]), (ElementType::U32, [512, 512])]
    {
        let bytes = shape[0] * shape[1] * element.bytes();
        // Nothing is known about the smallest one.
        let widest = EventSize::LogNormal { median: bytes / 8, sigma: 3.0, max: bytes };
        let mut widest = images(&plan(element, &shape, widest));
        let memory: usize = widest.runs.iter().map(|run| run.bytes.capacity()).sum();
        assert!(memory < 8 << 20, "{memory}");
        for sequence in 0..40 {
            counts(&image(&mut widest, sequence), element.bytes() as usize);
        }
        for bytes_max in [bytes, bytes / 2, bytes / 10, bytes / 100] {
            let mut images = images(&plan(element, &shape, EventSize::Fixed(bytes_max)));
            let image = image(&mut images, 7);
            assert!(image.len() as u64 <= bytes_max, "{element} {shape:?}: {} of {bytes_max}", image.len());
            // Images of few blocks have few sizes; those of noise are a little larger than the pixels.
            let least = if bytes < 100_000 { bytes_max / 4 } else { bytes_max / 10 * 9 };
            assert!(
                image.len() as u64 >= least.min(bytes_max / 2),
                "{element} {shape:?}: {} of {bytes_max}",
                image.len()
            );
            counts(&image, element.bytes() as usize);
        }
    }
}

#[test]
fn images_are_the_same_for_a_seed_and_differ_in_every_block() {
    let size = EventSize::Uniform { min: 60_000, max: 170_000 };
    let plan = plan(ElementType::U16, &[512, 512], size);
    let (mut one, mut same) = (images(&plan), images(&plan));
    let mut other = images(&SourcePlan { seed: 2, ..plan.clone() });
    assert_eq!(image(&mut one, 3), image(&mut same, 3));
    assert_ne!(image(&mut one, 3), image(&mut other, 3));
    // An image does not depend on those before it.
    image(&mut one, 900);
    assert_eq!(image(&mut one, 4), image(&mut same, 4));
    let mut stamps = BTreeSet::new();
    for sequence in 0..200 {
        let image = image(&mut one, sequence);
        let mut at = HEADER_BYTES;
        while at < image.len() {
            let length = u32::from_be_bytes(image[at..at + LENGTH_BYTES].try_into().unwrap()) as usize;
            let block = &image[at + LENGTH_BYTES..at + LENGTH_BYTES + length];
            let place = lone_literals(block, STAMP_BYTES, 512).unwrap();
            assert!(stamps.insert(block[place..place + STAMP_BYTES].to_vec()), "image {sequence}, byte {at}");
            at += LENGTH_BYTES + length;
        }
    }
    assert_eq!(stamps.len(), 200 * 64);
}

#[test]
fn only_a_dectris_detector_compresses() {
    let compressed = plan(ElementType::U16, &[512, 512], EventSize::Fixed(100_000));
    for protocol in [Protocol::Keepup, Protocol::Udp, Protocol::Files] {
        let plan = SourcePlan { protocol, ..compressed.clone() };
        assert!(Images::new(&plan).is_none());
        let hello = plan.hello(0);
        assert!(hello.streams[0].shape.is_empty() && hello.streams[0].compression.is_none());
    }
    assert!(Images::new(&SourcePlan { compressed: false, ..compressed }).is_none());
}

#[test]
fn images_that_cannot_be_compressed_so_are_refused() {
    let fault = |element, shape: &[u64], bytes| {
        plan(element, shape, EventSize::Fixed(bytes)).check().unwrap_err().to_string()
    };
    assert!(fault(ElementType::F32, &[512, 512], 100_000).contains("f32"));
    assert!(fault(ElementType::U16, &[], 100_000).contains("shape []"));
    assert!(fault(ElementType::U16, &[u64::MAX, 3], 100_000).contains("shape"));
    assert!(fault(ElementType::U16, &[60, 60], 3000).contains("at least 8192"));
    assert!(fault(ElementType::U16, &[512, 512], 524_289).contains("at most 524289 bytes"));
    assert!(fault(ElementType::U16, &[512, 512], 5241).contains("at most 5241 bytes"));
    let two = SourcePlan { streams: 2, ..plan(ElementType::U16, &[512, 512], EventSize::Fixed(100_000)) };
    assert!(two.check().unwrap_err().to_string().contains("has one"));
    let ioc = SourcePlan { protocol: Protocol::PvAccess, ..two };
    assert!(ioc.check().unwrap_err().to_string().contains("does not compress"));
}
