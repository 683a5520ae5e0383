//! Where a trace's addresses lie on the target: one explicit policy, and a count of all that it changed.
use keepup_results::ReplayMap;

/// Ranges of this size, bytes, are moved as a whole by [`Policy::Scale`], so that what was next to each other
/// stays so; and they are what is filled before anything is read.
pub const EXTENT_BYTES: u64 = 1 << 20;

/// What becomes of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// They stay; the target must have all of them.
    #[default]
    Identity,
    /// They stay; requests that the target has no room for are left out.
    Clip,
    /// They are taken modulo the target's size.
    Wrap,
    /// Extents of [`EXTENT_BYTES`] are brought nearer to each other, in proportion.
    Scale,
}

impl Policy {
    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Clip => "clip",
            Self::Wrap => "wrap",
            Self::Scale => "scale",
        }
    }
}

/// Places requests on a target.
#[derive(Debug)]
pub(super) struct Mapper {
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
    /// From an address space of `source_bytes` to one of `target_bytes`, both a multiple of the target's
    /// block of `block_bytes`.
    pub(super) fn new(policy: Policy, source_bytes: u64, target_bytes: u64, block_bytes: u64) -> Self {
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

    /// Where `bytes` at `offset` go, whole blocks of the target; `None` when it has no room for them.
    pub(super) fn place(&mut self, offset: u64, bytes: u64) -> Option<(u64, u64)> {
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
        let room = self.target_bytes.checked_sub(length)?;
        match self.policy {
            Policy::Identity | Policy::Clip => Some(begin).filter(|begin| *begin <= room),
            Policy::Wrap => Some((begin % self.target_bytes).min(room)),
            Policy::Scale => {
                let target_extents = (self.target_bytes / EXTENT_BYTES).max(1);
                if target_extents >= self.source_extents {
                    return Some(begin.min(room));
                }
                let scaled = u128::from(begin / EXTENT_BYTES) * u128::from(target_extents)
                    / u128::from(self.source_extents);
                let at = scaled as u64 * EXTENT_BYTES + begin % EXTENT_BYTES;
                Some(at.min(room))
            }
        }
    }

    /// What was changed.
    pub(super) fn report(mut self) -> ReplayMap {
        let share = |count: u64| (self.placed > 1).then(|| count as f64 / (self.placed - 1) as f64);
        self.report.sequential_before = share(self.followed.0);
        self.report.sequential_after = share(self.followed.1);
        self.report
    }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
