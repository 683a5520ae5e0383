//! Binning: sums of neighbours along the last one or two dimensions, in a wider element.
use std::ops::AddAssign;

use keepup_plan::Element;

use super::Kernel;
use super::sample::Sample;

/// Shape of bins and events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// Bytes of an event.
    pub(super) bytes: usize,
    /// Samples along the last dimension.
    pub(super) row: usize,
    /// Rows of a bin.
    pub(super) rows: usize,
    /// Columns of a bin.
    pub(super) columns: usize,
}

/// Step `bin` from one sample type to one that holds the sums.
pub(super) fn bin(from: Element, to: Element, cut: Cut) -> Box<dyn Kernel> {
    use Element::{I16, I32, I64, U16, U32, U64};
    match (from, to) {
        (Element::U8, U16) => Box::new(Bin::<u8, u16>::new(cut)),
        (Element::U8, U32) => Box::new(Bin::<u8, u32>::new(cut)),
        (Element::U8, _) => Box::new(Bin::<u8, u64>::new(cut)),
        (U16, U32) => Box::new(Bin::<u16, u32>::new(cut)),
        (U16, _) => Box::new(Bin::<u16, u64>::new(cut)),
        (U32 | U64, _) => Box::new(Bin::<u32, u64>::new(cut)),
        (Element::I8, I16) => Box::new(Bin::<i8, i16>::new(cut)),
        (Element::I8, I32) => Box::new(Bin::<i8, i32>::new(cut)),
        (Element::I8, _) => Box::new(Bin::<i8, i64>::new(cut)),
        (I16, I32) => Box::new(Bin::<i16, i32>::new(cut)),
        (I16, _) => Box::new(Bin::<i16, i64>::new(cut)),
        (I32 | I64, _) => Box::new(Bin::<i32, i64>::new(cut)),
        (Element::F32, _) => Box::new(Bin::<f32, f64>::new(cut)),
        (Element::F64, _) => Box::new(Bin::<f64, f64>::new(cut)),
    }
}

/// The step `bin`.
struct Bin<T, S> {
    cut: Cut,
    sums: Vec<S>,
    from: std::marker::PhantomData<fn(T)>,
}

impl<T: Sample, S: Sample + From<T> + AddAssign> Bin<T, S> {
    fn new(cut: Cut) -> Self {
        Self { cut, sums: vec![S::default(); cut.row / cut.columns], from: std::marker::PhantomData }
    }
}

impl<T: Sample, S: Sample + From<T> + AddAssign> Kernel for Bin<T, S> {
    fn run(&mut self, event: &[u8], output: &mut [u8]) -> Option<usize> {
        let Cut { bytes, row, rows, columns } = self.cut;
        let made = bytes / T::BYTES / rows / columns * S::BYTES;
        let output = output.get_mut(..made).filter(|_| event.len() == bytes)?;
        let bands = event.chunks_exact(row * rows * T::BYTES);
        for (band, to) in bands.zip(output.chunks_exact_mut(row / columns * S::BYTES)) {
            self.sums.fill(S::default());
            for line in band.chunks_exact(row * T::BYTES) {
                for (sum, bin) in self.sums.iter_mut().zip(line.chunks_exact(columns * T::BYTES)) {
                    bin.chunks_exact(T::BYTES).for_each(|sample| *sum += S::from(T::get(sample)));
                }
            }
            self.sums.iter().zip(to.chunks_exact_mut(S::BYTES)).for_each(|(sum, to)| sum.put(to));
        }
        Some(made)
    }
}
