//! Selections of rows for virtual datasets: runs along the first dimension, whole rows.
use std::ops::Range;

const HYPERSLAB: u32 = 2;

/// Selected rows of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection<'a> {
    /// Row ranges, ascending, at least one.
    pub(crate) rows: &'a [Range<u64>],
    /// Dimensions of a row.
    pub(crate) row: &'a [u64],
}

impl Selection<'_> {
    /// Whether [`put`](Self::put) can express it.
    pub(crate) fn is_expressible(&self) -> bool {
        self.rows.len() == 1 || self.is_short()
    }

    /// Whether it has a list of ranges: that form has 32-bit coordinates.
    fn is_short(&self) -> bool {
        let ends = self.rows.last().map(|run| run.end).into_iter().chain(self.row.iter().copied());
        ends.max().is_none_or(|end| u32::try_from(end).is_ok())
    }

    /// Appends the selection in the library's encoding: hyperslab version 1, a list of ranges with 32-bit
    /// coordinates, or, beyond them, version 2 for a single range.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let rank = self.row.len() as u32 + 1;
        match self.rows {
            [run] if !self.is_short() => {
                let dimensions = std::iter::once((run.start, run.end - run.start));
                let dimensions = dimensions.chain(self.row.iter().map(|&size| (0, size)));
                let mut body = rank.to_le_bytes().to_vec();
                for (start, size) in dimensions {
                    // Start, stride, count, block.
                    [start, 1, 1, size].iter().for_each(|n| body.extend_from_slice(&n.to_le_bytes()));
                }
                [HYPERSLAB, 2].iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
                // Flag 1: regular.
                out.push(1);
                out.extend_from_slice(&(body.len() as u32).to_le_bytes());
                out.extend_from_slice(&body);
            }
            runs => {
                let mut put = |number: u32| out.extend_from_slice(&number.to_le_bytes());
                let numbers = 2 + 2 * rank * runs.len() as u32;
                [HYPERSLAB, 1, 0, numbers * 4, rank, runs.len() as u32].into_iter().for_each(&mut put);
                for run in runs {
                    put(run.start as u32);
                    self.row.iter().for_each(|_| put(0));
                    put(run.end as u32 - 1);
                    self.row.iter().for_each(|&size| put(size as u32 - 1));
                }
            }
        }
    }
}
