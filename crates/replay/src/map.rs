//! Mapping of trace addresses to the target: one explicit policy, and counts of all changes.
use keepup_results::ReplayMap;

/// Extent size, bytes: [`Policy::Scale`] moves extents as a whole so that neighbouring requests
/// stay neighbours; extents are also the unit of filling before reads.
pub const EXTENT_BYTES: u64 = 1 << 20;

/// Address mapping policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Unchanged; the target must contain all addresses.
    #[default]
    Identity,
    /// Unchanged; requests beyond the target are dropped.
    Clip,
    /// Modulo the target's size.
    Wrap,
    /// Extents of [`EXTENT_BYTES`] are moved closer together proportionally.
    Scale,
}

impl Policy {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Clip => "clip",
            Self::Wrap => "wrap",
            Self::Scale => "scale",
        }
    }
}

/// Maps requests to a target.
#[derive(Debug)]
pub(crate) struct Mapper {
    policy: Policy,
    source_extents: u64,
    target_bytes: u64,
    block_bytes: u64,
    last: Option<(u64, u64)>,
    followed: (u64, u64),
    placed: u64,
    report: ReplayMap,
}

impl Mapper {
    /// A mapper from an address space of `source_bytes` to one of `target_bytes`, both a multiple
    /// of the target's block of `block_bytes`.
    pub(crate) fn new(policy: Policy, source_bytes: u64, target_bytes: u64, block_bytes: u64) -> Self {
        Self {
            policy,
            source_extents: source_bytes.div_ceil(EXTENT_BYTES).max(1),
            target_bytes,
            block_bytes,
            last: None,
            followed: (0, 0),
            placed: 0,
            report: ReplayMap {
                policy: policy.name().into(),
                source_bytes,
                target_bytes,
                block_bytes,
                ..ReplayMap::default()
            },
        }
    }

    /// Target range of `bytes` at `offset`, in whole blocks; `None` if it does not fit.
    pub(crate) fn place(&mut self, offset: u64, bytes: u64) -> Option<(u64, u64)> {
        let block = self.block_bytes;
        let begin = offset / block * block;
        let length = (offset + bytes).div_ceil(block) * block - begin;
        let Some(at) = self.move_to(begin, length) else {
            self.report.left_out += 1;
            return None;
        };
        if length != bytes {
            self.report.aligned += 1;
            self.report.aligned_bytes += length - bytes;
        }
        if at != begin {
            self.report.moved += 1;
        }
        if let Some((before, after)) = self.last {
            self.followed.0 += u64::from(before == offset);
            self.followed.1 +=
                u64::from(after == at || (before == offset && after > at && after - at < block));
        }
        self.last = Some((offset + bytes, at + length));
        self.placed += 1;
        Some((at, length))
    }

    fn move_to(&self, begin: u64, length: u64) -> Option<u64> {
        let last_begin = self.target_bytes.checked_sub(length)?;
        match self.policy {
            Policy::Identity | Policy::Clip => Some(begin).filter(|begin| *begin <= last_begin),
            Policy::Wrap => Some((begin % self.target_bytes).min(last_begin)),
            Policy::Scale => {
                let target_extents = (self.target_bytes / EXTENT_BYTES).max(1);
                if target_extents >= self.source_extents {
                    return Some(begin.min(last_begin));
                }
                let scaled = u128::from(begin / EXTENT_BYTES) * u128::from(target_extents)
                    / u128::from(self.source_extents);
                let at = scaled as u64 * EXTENT_BYTES + begin % EXTENT_BYTES;
                Some(at.min(last_begin))
            }
        }
    }

    /// Counts of all changes.
    pub(crate) fn report(mut self) -> ReplayMap {
        let share = |count: u64| (self.placed > 1).then(|| count as f64 / (self.placed - 1) as f64);
        self.report.sequential_before = share(self.followed.0);
        self.report.sequential_after = share(self.followed.1);
        self.report
    }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
