//! Reduction of events before they are written: steps as pure functions of one event, and the
//! threads that apply them to blocks.
//!
//! Samples are little-endian before and after each step. Invariants: an event becomes exactly one
//! event; the result depends on that event alone; no allocation after the first event of a kind.
mod bin;
mod compress;
mod decimate;
mod sample;
mod spectrum;
mod threshold;
pub(crate) mod worker;

use keepup_plan::Element;
use keepup_plan::reduction::{Keep, Reduction, Samples, Step, StepError, reduction_of};
use keepup_stream::bslz4;
use keepup_stream::wire::{ElementType, StreamInfo};

use self::sample::by_element;

/// One step, prepared for events of one kind.
pub trait Kernel: Send {
    /// Writes the reduced `event` to the front of `output` and returns its bytes; `None` when
    /// `event` does not have the prepared length, or `output` is too small.
    fn run(&mut self, event: &[u8], output: &mut [u8]) -> Option<usize>;
}

/// All steps of a reduction, prepared for events of one kind.
pub struct Chain {
    kernels: Vec<Box<dyn Kernel>>,
    /// Intermediate results, used alternately.
    between: [Vec<u8>; 2],
    output_bytes_max: usize,
}

impl Chain {
    /// Allocates tables and memory for events of the kind `input`.
    ///
    /// # Errors
    /// A step does not accept its input.
    pub fn new(steps: &[Step], input: &Samples) -> Result<Self, StepError> {
        let (mut samples, mut between_bytes) = (input.clone(), 0);
        let mut kernels = Vec::with_capacity(steps.len());
        for step in steps {
            let output = step.output(&samples)?;
            kernels.push(kernel(step, &samples, &output));
            between_bytes = between_bytes.max(bytes_max(&output));
            samples = output;
        }
        let between_bytes = if steps.len() > 1 { between_bytes } else { 0 };
        Ok(Self {
            kernels,
            between: [vec![0; between_bytes], vec![0; between_bytes]],
            output_bytes_max: bytes_max(&samples),
        })
    }

    /// Largest size of a reduced event, in bytes.
    pub fn output_bytes_max(&self) -> usize {
        self.output_bytes_max
    }

    /// Writes the reduced `event` to the front of `output` and returns its bytes; `None` when
    /// `event` does not have the prepared length, or `output` is too small.
    pub fn run(&mut self, event: &[u8], output: &mut [u8]) -> Option<usize> {
        let (last, others) = self.kernels.split_last_mut()?;
        let [front, back] = &mut self.between;
        let mut bytes = None;
        for kernel in others {
            bytes = Some(match bytes {
                None => kernel.run(event, front)?,
                Some(bytes) => {
                    let made = kernel.run(front.get(..bytes)?, back)?;
                    std::mem::swap(front, back);
                    made
                }
            });
        }
        match bytes {
            None => last.run(event, output),
            Some(bytes) => last.run(front.get(..bytes)?, output),
        }
    }
}

/// Largest size of an event of this kind, compressed or not, in bytes.
pub(crate) fn bytes_max(samples: &Samples) -> usize {
    let bytes = samples.bytes().unwrap_or(0) as usize;
    if samples.compressed { bslz4::bytes_max(bytes, samples.element.bytes() as usize) } else { bytes }
}

/// Kind of samples in the events of the stream `info`.
pub(crate) fn samples(info: &StreamInfo) -> Samples {
    let compressed = info.compression.is_some();
    Samples { element: element(info.element), shape: info.shape.clone(), compressed }
}

/// Largest stored size of one event with `event_bytes` of the stream `info`, in bytes. The
/// event's own size if the reduction does not apply, which the recorder refuses.
pub fn stored_bytes_max(reductions: &[Reduction], info: &StreamInfo, event_bytes: u64) -> u64 {
    let reduced = reduction_of(reductions, info.id).and_then(|reduction| {
        let output = reduction.output(&samples(info)).ok()?;
        let raw = if reduction.keep == Keep::Both { event_bytes } else { 0 };
        Some(raw + bytes_max(&output) as u64)
    });
    reduced.unwrap_or(event_bytes)
}

fn element(element: ElementType) -> Element {
    match element {
        ElementType::U8 => Element::U8,
        ElementType::U16 => Element::U16,
        ElementType::U32 => Element::U32,
        ElementType::U64 => Element::U64,
        ElementType::I8 => Element::I8,
        ElementType::I16 => Element::I16,
        ElementType::I32 => Element::I32,
        ElementType::I64 => Element::I64,
        ElementType::F32 => Element::F32,
        ElementType::F64 => Element::F64,
    }
}

/// Wire name of a sample type.
pub(crate) fn element_type(element: Element) -> ElementType {
    match element {
        Element::U8 => ElementType::U8,
        Element::U16 => ElementType::U16,
        Element::U32 => ElementType::U32,
        Element::U64 => ElementType::U64,
        Element::I8 => ElementType::I8,
        Element::I16 => ElementType::I16,
        Element::I32 => ElementType::I32,
        Element::I64 => ElementType::I64,
        Element::F32 => ElementType::F32,
        Element::F64 => ElementType::F64,
    }
}

fn kernel(step: &Step, input: &Samples, output: &Samples) -> Box<dyn Kernel> {
    let last = |samples: &Samples| samples.shape.last().copied().unwrap_or(1) as usize;
    let bytes = bytes_max(input);
    match *step {
        Step::Decimate { by } => {
            let (row, by) = (last(input), by as usize);
            by_element!(input.element, T => Box::new(decimate::Decimate::<T>::new(bytes, row, by)))
        }
        Step::Bin { rows, columns } => {
            let cut = bin::Cut { bytes, row: last(input), rows: rows as usize, columns: columns as usize };
            bin::bin(input.element, output.element, cut)
        }
        Step::Threshold { at } => {
            by_element!(input.element, T => Box::new(threshold::Threshold::<T>::new(bytes, at)))
        }
        Step::Spectrum { window, size } => {
            let size = size.map_or(last(input), |size| size as usize);
            by_element!(input.element, T => Box::new(spectrum::Spectrum::<T>::new(bytes, size, window)))
        }
        Step::Lz4 => Box::new(bslz4::Compressor::new(bytes, input.element.bytes() as usize)),
    }
}

#[cfg(test)]
#[path = "reduce/reduce_tests.rs"]
mod tests;
