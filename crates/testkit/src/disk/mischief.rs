//! What a disk does wrong without saying so, once: to the read or the write of a file that covers an offset.
use std::ffi::OsStr;

/// One such fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mischief {
    /// The file's name.
    name: String,
    /// Offset in it, in bytes.
    offset: u64,
    /// How many times it still does right.
    skip: u64,
    kind: Kind,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A read has a wrong bit at the offset.
    FlipRead,
    /// A write stores a wrong bit at the offset.
    FlipWrite,
    /// A write is not stored at all.
    Lose,
    /// A write is stored elsewhere, at this offset.
    Move(u64),
}

/// What becomes of a write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Stored where it belongs.
    Right,
    /// Stored there with a wrong bit at this place within it.
    Flipped(usize),
    /// Not stored.
    Lost,
    /// Stored at another offset.
    Moved(u64),
}

impl Mischief {
    /// Reads an order: name, offset, times to do right, kind, and where to for a write that goes astray.
    pub(super) fn parse(order: &str) -> Option<Self> {
        let mut words = order.split(' ');
        let name = words.next()?.to_owned();
        let (offset, skip) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let kind = match words.next()? {
            "flip-read" => Kind::FlipRead,
            "flip-write" => Kind::FlipWrite,
            "lose" => Kind::Lose,
            "move" => Kind::Move(words.next()?.parse().ok()?),
            _ => return None,
        };
        Some(Self { name, offset, skip, kind })
    }

    /// Whether it is this one's turn; counts those that it lets pass.
    fn strikes(&mut self, reads: bool, name: &OsStr, offset: u64, bytes: usize) -> bool {
        let is_kind = (self.kind == Kind::FlipRead) == reads;
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

/// The wrong bit of a read of `bytes` at `offset`, as a place within it; that fault is over then.
pub(super) fn of_read(all: &mut Vec<Mischief>, name: &OsStr, offset: u64, bytes: usize) -> Option<usize> {
    let at = all.iter_mut().position(|mischief| mischief.strikes(true, name, offset, bytes))?;
    Some((all.remove(at).offset - offset) as usize)
}

/// What becomes of a write of `bytes` at `offset`; the fault that it meets is over then.
pub(super) fn of_write(all: &mut Vec<Mischief>, name: &OsStr, offset: u64, bytes: usize) -> Fate {
    let Some(at) = all.iter_mut().position(|mischief| mischief.strikes(false, name, offset, bytes)) else {
        return Fate::Right;
    };
    let mischief = all.remove(at);
    match mischief.kind {
        Kind::FlipRead => Fate::Right,
        Kind::FlipWrite => Fate::Flipped((mischief.offset - offset) as usize),
        Kind::Lose => Fate::Lost,
        Kind::Move(to) => Fate::Moved(to),
    }
}

#[cfg(test)]
#[path = "mischief_tests.rs"]
mod tests;
