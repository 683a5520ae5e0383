//! What a master window of a VME bus shows, as users write it.
use std::fmt;
use std::str::FromStr;

use keepup_sys::vme::Master;

/// Settings of a master window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmeWindow {
    /// First address on the bus.
    pub address: u64,
    /// Size, bytes.
    pub bytes: u64,
    /// Address space, a number of linux/vme.h.
    pub space: u32,
    /// Cycles and address modifiers, bits of linux/vme.h.
    pub cycle: u32,
    /// Widest access, bits.
    pub width_bits: u32,
}

/// Address spaces (linux/vme.h), with the bits of their addresses.
const SPACES: [(&str, u32, u32); 5] =
    [("A16", 0x1, 16), ("A24", 0x2, 24), ("A32", 0x4, 32), ("A64", 0x8, 64), ("CRCSR", 0x10, 24)];
/// Kinds of cycles that a single access or a block makes.
const KINDS: [(&str, u32); 3] = [("SCT", 0x1), ("BLT", 0x2), ("MBLT", 0x4)];
/// Address modifiers: who, and what.
const WHO: [(&str, u32); 2] = [("SUPER", 0x1000), ("USER", 0x2000)];
const WHAT: [(&str, u32); 2] = [("PROG", 0x4000), ("DATA", 0x8000)];

impl VmeWindow {
    /// As the kernel takes it.
    pub fn master(&self) -> Master {
        Master {
            enable: 1,
            address: self.address,
            bytes: self.bytes,
            space: self.space,
            cycle: self.cycle,
            width: self.width_bits / 8,
        }
    }
}

/// The cycles that a text names; USER and DATA where it does not say.
fn cycles(text: &str) -> Option<u32> {
    let mut found = 0;
    for word in text.split('+') {
        let known = KINDS.iter().chain(&WHO).chain(&WHAT).find(|(name, _)| *name == word)?;
        found |= known.1;
    }
    let of = |all: &[(&str, u32)]| all.iter().map(|(_, bit)| bit).sum::<u32>() & found;
    let or = |bits: u32, default: u32| if bits == 0 { default } else { bits };
    let (kind, who, what) = (or(of(&KINDS), 0x1), or(of(&WHO), 0x2000), or(of(&WHAT), 0x8000));
    let is_one = [kind, who, what].iter().all(|bits| bits.count_ones() == 1);
    is_one.then_some(kind | who | what)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

impl FromStr for VmeWindow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut address, mut bytes, mut space, mut cycle, mut width_bits) = (None, None, None, 0xa001, 32);
        for setting in text.split(',') {
            let (key, value) =
                setting.split_once('=').ok_or("settings of a window are written as key=value")?;
            let mut take = || {
                match key {
                    "address" => address = Some(number(value)?),
                    "size" => bytes = Some(number(value).filter(|bytes| *bytes > 0)?),
                    "space" => space = Some(SPACES.iter().find(|(name, _, _)| *name == value)?),
                    "cycle" => cycle = cycles(value)?,
                    "width" => width_bits = value.parse().ok().filter(|b| matches!(b, 8 | 16 | 32 | 64))?,
                    _ => return None,
                }
                Some(())
            };
            take().ok_or_else(|| format!("{setting:?} is no setting of a window: {SETTINGS}"))?;
        }
        let missing = || format!("address, size and space of the window belong together: {SETTINGS}");
        let (address, bytes) = address.zip(bytes).ok_or_else(missing)?;
        let (name, space, bits) = space.ok_or_else(missing)?;
        let last = address.checked_add(bytes - 1).filter(|last| *bits == 64 || *last >> bits == 0);
        last.ok_or_else(|| format!("{bytes:#x} bytes from {address:#x} on do not lie within {name}"))?;
        Ok(Self { address, bytes, space: *space, cycle, width_bits })
    }
}

const SETTINGS: &str = "address=0x10000,size=0x1000,space=A16|A24|A32|A64|CRCSR and, unless it is \
                        cycle=SCT+USER+DATA,width=32, those (SCT|BLT|MBLT, SUPER|USER, PROG|DATA)";

impl fmt::Display for VmeWindow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = SPACES.iter().find(|(_, space, _)| *space == self.space).map_or("", |(name, _, _)| name);
        let cycle = KINDS.iter().chain(&WHO).chain(&WHAT).filter(|(_, bit)| self.cycle & bit != 0);
        let cycle: Vec<&str> = cycle.map(|(name, _)| *name).collect();
        write!(
            out,
            "address={:#x},size={:#x},space={space},cycle={},width={}",
            self.address,
            self.bytes,
            cycle.join("+"),
            self.width_bits
        )
    }
}

#[cfg(test)]
#[path = "vme_tests.rs"]
mod tests;
