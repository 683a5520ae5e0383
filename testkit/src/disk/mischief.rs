//! Silent single faults in the read or write of a file that covers an offset.
use std::ffi::OsStr;

/// One silent fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mischief {
    /// File name.
    name: String,
    /// Offset in the file, bytes.
    offset: u64,
    /// Number of accesses to skip.
    skip: u64,
    kind: FaultKind,
}

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultKind {
    /// A read returns a flipped bit at the offset.
    FlipRead,
    /// A write stores a flipped bit at the offset.
    FlipWrite,
    /// A write is lost.
    Lose,
    /// A write is stored at this offset instead.
    Move(u64),
}

/// Effect on a write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Stored correctly.
    Right,
    /// Stored with a flipped bit at this position in it.
    Flipped(usize),
    /// Not stored.
    Lost,
    /// Stored at another offset.
    Moved(u64),
}

impl Mischief {
    /// Parses a command: name, offset, number of accesses to skip, kind, and target offset for a
    /// misplaced write.
    pub(super) fn parse(order: &str) -> Option<Self> {
        let mut words = order.split(' ');
        let name = words.next()?.to_owned();
        let (offset, skip) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let kind = match words.next()? {
            "flip-read" => FaultKind::FlipRead,
            "flip-write" => FaultKind::FlipWrite,
            "lose" => FaultKind::Lose,
            "move" => FaultKind::Move(words.next()?.parse().ok()?),
            _ => return None,
        };
        Some(Self { name, offset, skip, kind })
    }

    /// Whether the fault applies to this access; counts skipped ones.
    fn strikes(&mut self, reads: bool, name: &OsStr, offset: u64, bytes: usize) -> bool {
        let is_kind = (self.kind == FaultKind::FlipRead) == reads;
        let covers = offset <= self.offset && self.offset < offset + bytes as u64;
        if !is_kind || !covers || name != OsStr::new(&self.name) {
            return false;
        }
        self.skip = match self.skip {
            0 => return true,
            left => left - 1,
        };
        false
    }
}

/// Position of the flipped bit in a read of `bytes` at `offset`; consumes the fault.
pub(super) fn of_read(all: &mut Vec<Mischief>, name: &OsStr, offset: u64, bytes: usize) -> Option<usize> {
    let at = all.iter_mut().position(|mischief| mischief.strikes(true, name, offset, bytes))?;
    Some((all.remove(at).offset - offset) as usize)
}

/// Effect on a write of `bytes` at `offset`; consumes the fault.
pub(super) fn of_write(all: &mut Vec<Mischief>, name: &OsStr, offset: u64, bytes: usize) -> Fate {
    let Some(at) = all.iter_mut().position(|mischief| mischief.strikes(false, name, offset, bytes)) else {
        return Fate::Right;
    };
    let mischief = all.remove(at);
    match mischief.kind {
        FaultKind::FlipRead => Fate::Right,
        FaultKind::FlipWrite => Fate::Flipped((mischief.offset - offset) as usize),
        FaultKind::Lose => Fate::Lost,
        FaultKind::Move(to) => Fate::Moved(to),
    }
}

#[cfg(test)]
#[path = "mischief_tests.rs"]
mod tests;
