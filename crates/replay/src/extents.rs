//! Extents of a target that requests use.
use crate::map::EXTENT_BYTES;

/// Extents of the target that requests use.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    /// Read or written.
    pub(crate) touched: Touched,
    /// Discarded.
    pub(crate) discarded: Touched,
}

/// Bitmap of touched extents.
#[derive(Debug, Default)]
pub(crate) struct Touched(Vec<u64>);

impl Touched {
    /// Adds the extents of `bytes` at `offset`.
    pub(crate) fn add(&mut self, offset: u64, bytes: u64) {
        let last = (offset + bytes.max(1) - 1) / EXTENT_BYTES;
        for extent in offset / EXTENT_BYTES..=last {
            let word = (extent / 64) as usize;
            if word >= self.0.len() {
                self.0.resize(word + 1, 0);
            }
            self.0[word] |= 1 << (extent % 64);
        }
    }

    /// Extents in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, other)| one & other).collect())
    }

    fn has(&self, extent: u64) -> bool {
        self.0.get((extent / 64) as usize).is_some_and(|word| word >> (extent % 64) & 1 == 1)
    }

    /// Runs of extents below the address `end`: offset and length, bytes.
    pub(crate) fn runs(&self, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let extents = self.0.len() as u64 * 64;
        let mut next = 0;
        std::iter::from_fn(move || {
            let first = (next..extents).find(|extent| self.has(*extent))?;
            next = (first..extents).find(|extent| !self.has(*extent)).unwrap_or(extents);
            let begin = first * EXTENT_BYTES;
            Some((begin, (next * EXTENT_BYTES).min(end) - begin))
        })
    }
}
