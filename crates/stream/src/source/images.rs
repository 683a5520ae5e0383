//! Compressed images: photon counts that are compressed at the start with bitshuffle and LZ4, as DECTRIS
//! detectors send them.
//!
//! A compressed image is a row of blocks that were compressed independently. A few hundred blocks for each of
//! several brightnesses are enough to compose images of any size: the first blocks of an image have one
//! brightness, and the rest have the next one. The compressor runs only at the start. A stamp in the literals
//! of each block makes images distinct: it changes the lowest bits of a few pixels, and no length.
//!
//! Invariants: the size of an event depends on the plan, its stream and its sequence number alone, and is
//! above the drawn size only if no image is that small; the blocks of an image are from at most two runs,
//! which fit a core's second-level cache; all runs together take less than 8 MiB.
mod photons;

use std::sync::Arc;

use self::photons::{Brightness, Photons};
use super::event::{Event, PIECE_BYTES};
use super::plan::{EventSize, SourcePlan};
use super::size::mix;
use crate::bslz4::{self, BLOCK_BYTES, Compressor, HEADER_BYTES, lone_literals};

/// A run ends with the block that reaches this length.
const RUN_BYTES: usize = 256 << 10;
/// Most blocks of a run.
const RUN_BLOCKS_MAX: u64 = 512;
/// Blocks from which the size of the images of a brightness is estimated.
const PROBE_BLOCKS: u64 = 8;
/// The estimate may be wrong by this factor.
const MARGIN: f64 = 1.1;
/// Bytes of a stamp.
const STAMP_BYTES: usize = 8;
/// Length of a compressed block, in front of it, bytes.
const LENGTH_BYTES: usize = 4;

/// Sizes of the images of one brightness.
#[derive(Debug, Clone)]
struct RunSizes {
    /// End of each block of the run, bytes.
    ends: Vec<u32>,
    /// What is less than a block at the end of an image, bytes.
    tail: u64,
}

impl RunSizes {
    fn run_bytes(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0).into()
    }

    /// Length of `blocks` blocks, for which the run repeats, bytes.
    fn bytes(&self, blocks: u64) -> u64 {
        let run_blocks = self.ends.len() as u64;
        let rest = (blocks % run_blocks) as usize;
        let rest = rest.checked_sub(1).map_or(0, |last| self.ends[last]);
        blocks / run_blocks * self.run_bytes() + u64::from(rest)
    }
}

/// Blocks of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Composition {
    /// Run of the first blocks; the next one has the rest.
    run: usize,
    /// Number of the first blocks.
    first: u64,
}

/// Sizes of the images of a source.
#[derive(Debug)]
pub(super) struct ImageSizes {
    drawn: EventSize,
    seed: u64,
    /// Whole blocks of an image; at least 1.
    blocks: u64,
    /// By brightness; at least 1.
    runs: Vec<RunSizes>,
}

impl ImageSizes {
    /// Payload bytes of event `sequence` of `stream`.
    pub(super) fn bytes(&self, stream: u32, sequence: u64) -> u64 {
        self.size_of(self.composition(stream, sequence))
    }

    fn composition(&self, stream: u32, sequence: u64) -> Composition {
        self.largest_within(self.drawn.bytes(self.seed, stream, sequence))
    }

    /// The largest image of at most `bytes`, give or take a block; the smallest image if none fits.
    fn largest_within(&self, bytes: u64) -> Composition {
        let fits = |composition: &Composition| self.size_of(*composition) <= bytes;
        let mut even = (0..self.runs.len()).rev().map(|run| Composition { run, first: self.blocks });
        let mut found = even.find(fits).unwrap_or(Composition { run: 0, first: self.blocks });
        // Fewer dim blocks make an image larger.
        let mut too_few = if found.run + 1 == self.runs.len() { self.blocks } else { 0 };
        while too_few < found.first {
            let middle = Composition { first: too_few + (found.first - too_few) / 2, ..found };
            match fits(&middle) {
                true => found = middle,
                false => too_few = middle.first + 1,
            }
        }
        found
    }

    fn size_of(&self, Composition { run, first }: Composition) -> u64 {
        let rest = self.runs.get(run + 1).map_or(0, |next| next.bytes(self.blocks - first));
        HEADER_BYTES as u64 + self.runs[run].bytes(first) + rest + self.runs[run].tail
    }
}

/// Compressed blocks of one brightness.
#[derive(Debug, Clone)]
struct Run {
    bytes: Vec<u8>,
    /// Offset of the stamp in each block, from the start of the run, if the block has a place for it.
    stamps: Vec<Option<u32>>,
    /// What follows the last whole block of an image.
    tail: Vec<u8>,
}

/// Images of a source, in pieces.
#[derive(Debug)]
pub(super) struct Images {
    sizes: Arc<ImageSizes>,
    runs: Vec<Run>,
    header: [u8; HEADER_BYTES],
    salt: u64,
}

impl Images {
    /// Prepares the images of `plan`; `None` if it does not send compressed images.
    pub(super) fn new(plan: &SourcePlan) -> Option<Images> {
        let bytes = plan.uncompressed_bytes()?;
        let mut maker = Maker::new(plan.seed, bytes, plan.element.bytes() as usize);
        let (mut runs, mut sizes) = (Vec::new(), Vec::new());
        for brightness in maker.brightnesses(&plan.size) {
            let (run, run_sizes) = maker.run(brightness, RUN_BLOCKS_MAX);
            runs.push(run);
            sizes.push(run_sizes);
        }
        let blocks = bytes / BLOCK_BYTES as u64;
        let sizes = Arc::new(ImageSizes { drawn: plan.size, seed: plan.seed, blocks, runs: sizes });
        Some(Images { sizes, runs, header: bslz4::header(bytes), salt: maker.rng.u64(..) })
    }

    pub(super) fn sizes(&self) -> &Arc<ImageSizes> {
        &self.sizes
    }

    /// What every image starts with.
    pub(super) fn header(&self) -> &[u8] {
        &self.header
    }

    /// Piece of an image that starts at byte `from`, which is where the header or another piece ended.
    pub(super) fn piece(&mut self, event: &Event, from: u64) -> &[u8] {
        let Composition { run, first } = self.sizes.composition(event.stream, event.sequence);
        let at = from.saturating_sub(HEADER_BYTES as u64);
        let first_bytes = self.sizes.runs[run].bytes(first);
        if at < first_bytes {
            return self.blocks(event, run, at, 0..first);
        }
        let (at, rest) = (at - first_bytes, self.sizes.blocks - first);
        let rest_bytes = self.sizes.runs.get(run + 1).map_or(0, |next| next.bytes(rest));
        if at < rest_bytes {
            return self.blocks(event, run + 1, at, first..self.sizes.blocks);
        }
        let tail = &self.runs[run].tail;
        &tail[((at - rest_bytes) as usize).min(tail.len())..]
    }

    /// Whole blocks from byte `at` of a part of an image. The part has the `blocks` of the image, for which
    /// the run repeats.
    fn blocks(&mut self, event: &Event, run: usize, at: u64, blocks: std::ops::Range<u64>) -> &[u8] {
        let sizes = &self.sizes.runs[run];
        let (lap, at) = (at / sizes.run_bytes(), (at % sizes.run_bytes()) as u32);
        let begin = sizes.ends.partition_point(|end| *end <= at);
        let fitting = sizes.ends.partition_point(|end| *end <= at + PIECE_BYTES as u32);
        // Index in the image of the block at the start of the run.
        let lap_block = blocks.start + lap * sizes.ends.len() as u64;
        let left = blocks.end.saturating_sub(lap_block).min(sizes.ends.len() as u64) as usize;
        let end = fitting.max(begin + 1).min(left);
        let Run { bytes, stamps, .. } = &mut self.runs[run];
        let event_word = mix(event.sequence ^ self.salt) ^ u64::from(event.stream) << 32;
        for (block, stamp) in (lap_block + begin as u64..).zip(&stamps[begin..end]) {
            if let Some(stamp) = *stamp {
                let stamp = stamp as usize..stamp as usize + STAMP_BYTES;
                bytes[stamp].copy_from_slice(&mix(event_word ^ block).to_le_bytes());
            }
        }
        &bytes[at as usize..sizes.ends[end - 1] as usize]
    }
}

/// Compressor of random blocks.
struct Maker {
    rng: fastrand::Rng,
    /// Uncompressed image, bytes.
    image_bytes: u64,
    pixel_bytes: usize,
    block: Compressor,
    tail: Compressor,
    pixels: Vec<u8>,
    output: Vec<u8>,
}

impl Maker {
    fn new(seed: u64, image_bytes: u64, pixel_bytes: usize) -> Self {
        let tail_bytes = (image_bytes % BLOCK_BYTES as u64) as usize;
        Self {
            rng: fastrand::Rng::with_seed(mix(seed)),
            image_bytes,
            pixel_bytes,
            block: Compressor::new(BLOCK_BYTES, pixel_bytes),
            tail: Compressor::new(tail_bytes, pixel_bytes),
            pixels: vec![0; BLOCK_BYTES],
            output: vec![0; bslz4::bytes_max(BLOCK_BYTES, pixel_bytes)],
        }
    }

    fn blocks(&self) -> u64 {
        self.image_bytes / BLOCK_BYTES as u64
    }

    /// The brightnesses from which images of `size` are composed: all between the one with images of the
    /// smallest size and the one with images of the largest size.
    fn brightnesses(&mut self, size: &EventSize) -> Vec<Brightness> {
        let levels: Vec<Brightness> = Brightness::levels(self.pixel_bytes).collect();
        let estimates: Vec<f64> = levels.iter().map(|level| self.estimate(*level)).collect();
        let (min, max) = (size.min_bytes() as f64 / MARGIN, size.max_bytes() as f64 * MARGIN);
        let first = estimates.iter().rposition(|bytes| *bytes <= min).unwrap_or(0);
        let last = estimates.iter().position(|bytes| *bytes >= max).unwrap_or(levels.len() - 1);
        levels[first..=last.max(first)].to_vec()
    }

    /// Estimated length of an image, bytes.
    fn estimate(&mut self, brightness: Brightness) -> f64 {
        let (_, sizes) = self.run(brightness, PROBE_BLOCKS);
        let block = sizes.run_bytes() as f64 / sizes.ends.len().max(1) as f64;
        self.blocks() as f64 * block + sizes.tail as f64
    }

    /// A run of at most `blocks_max` blocks.
    fn run(&mut self, brightness: Brightness, blocks_max: u64) -> (Run, RunSizes) {
        let photons = Photons::new(brightness);
        let mut run = Run { bytes: Vec::new(), stamps: Vec::new(), tail: Vec::new() };
        let mut ends = Vec::new();
        while run.bytes.len() < RUN_BYTES && (ends.len() as u64) < blocks_max.min(self.blocks()) {
            let start = run.bytes.len();
            self.compress(&photons, BLOCK_BYTES, &mut run.bytes);
            // The lowest bits of all pixels come first.
            let lowest_bits = BLOCK_BYTES / (8 * self.pixel_bytes);
            let place = lone_literals(&run.bytes[start + LENGTH_BYTES..], STAMP_BYTES, lowest_bits);
            run.stamps.push(place.map(|place| (start + LENGTH_BYTES + place) as u32));
            ends.push(run.bytes.len() as u32);
        }
        self.compress(&photons, (self.image_bytes % BLOCK_BYTES as u64) as usize, &mut run.tail);
        let tail = run.tail.len() as u64;
        (run, RunSizes { ends, tail })
    }

    /// Appends `bytes` of pixels in their compressed form, without a header.
    fn compress(&mut self, photons: &Photons, bytes: usize, out: &mut Vec<u8>) {
        let pixels = &mut self.pixels[..bytes];
        photons.fill(&mut self.rng, pixels, self.pixel_bytes);
        let compressor = if bytes == BLOCK_BYTES { &mut self.block } else { &mut self.tail };
        // The output has space for a whole block.
        let used = compressor.compress(pixels, &mut self.output).unwrap_or(HEADER_BYTES);
        out.extend_from_slice(&self.output[HEADER_BYTES..used]);
    }
}

#[cfg(test)]
#[path = "images_tests.rs"]
mod tests;
