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
    /// Whether [`put`](Self::put) can express it: the irregular form has 32-bit coordinates.
    pub(crate) fn is_expressible(&self) -> bool {
        let ends = self.rows.last().map(|run| run.end).into_iter().chain(self.row.iter().copied());
        self.rows.len() == 1 || ends.max().is_none_or(|end| u32::try_from(end).is_ok())
    }

    /// Appends the selection in the library's encoding: hyperslab version 2 for one run, version
    /// 1 for several.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let rank = self.row.len() as u32 + 1;
        match self.rows {
            [run] => {
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
                let mut numbers = vec![rank, runs.len() as u32];
                for run in runs {
                    numbers.push(run.start as u32);
                    numbers.extend(self.row.iter().map(|_| 0));
                    numbers.push(run.end as u32 - 1);
                    numbers.extend(self.row.iter().map(|&size| size as u32 - 1));
                }
                let opening = [HYPERSLAB, 1, 0, numbers.len() as u32 * 4];
                opening.iter().chain(&numbers).for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
            }
        }
    }
}
