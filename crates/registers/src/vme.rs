//! Settings of a VME master window, and their text form.
use std::fmt;
use std::str::FromStr;

use keepup_measure::sum::Sums;
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
/// Cycle types.
const CYCLES: [(&str, u32); 3] = [("SCT", 0x1), ("BLT", 0x2), ("MBLT", 0x4)];
/// Address modifiers: privilege and kind of access.
const PRIVILEGES: [(&str, u32); 2] = [("SUPER", 0x1000), ("USER", 0x2000)];
const ACCESSES: [(&str, u32); 2] = [("PROG", 0x4000), ("DATA", 0x8000)];

impl VmeWindow {
    /// The kernel's form.
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

/// Parses cycles and address modifiers; the defaults are SCT, USER and DATA.
fn cycles(text: &str) -> Option<u32> {
    let mut found = 0;
    for word in text.split('+') {
        let known = CYCLES.iter().chain(&PRIVILEGES).chain(&ACCESSES).find(|(name, _)| *name == word)?;
        found |= known.1;
    }
    let group = |all: &[(&str, u32)], default: u32| {
        let bits = all.iter().map(|(_, bit)| bit).saturating_sum::<u32>() & found;
        if bits == 0 { default } else { bits }
    };
    let groups = [group(&CYCLES, 0x1), group(&PRIVILEGES, 0x2000), group(&ACCESSES, 0x8000)];
    let has_one_each = groups.iter().all(|bits| bits.count_ones() == 1);
    has_one_each.then_some(groups.iter().saturating_sum())
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
            let (key, value) = setting.split_once('=').ok_or("window settings have the form key=value")?;
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
            take().ok_or_else(|| format!("invalid window setting {setting:?}; valid: {SETTINGS}"))?;
        }
        let missing = || format!("a window needs address, size and space: {SETTINGS}");
        let (address, bytes) = address.zip(bytes).ok_or_else(missing)?;
        let (name, space, bits) = space.ok_or_else(missing)?;
        let last = address.checked_add(bytes - 1).filter(|last| *bits == 64 || *last >> bits == 0);
        last.ok_or_else(|| format!("{bytes:#x} bytes at {address:#x} exceed the address space {name}"))?;
        Ok(Self { address, bytes, space: *space, cycle, width_bits })
    }
}

const SETTINGS: &str = "address=0x10000,size=0x1000,space=A16|A24|A32|A64|CRCSR; optional \
                        cycle=SCT|BLT|MBLT+SUPER|USER+PROG|DATA,width=8|16|32|64 \
                        (default SCT+USER+DATA, 32)";

impl fmt::Display for VmeWindow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = SPACES.iter().find(|(_, space, _)| *space == self.space).map_or("", |(name, _, _)| name);
        let cycle = CYCLES.iter().chain(&PRIVILEGES).chain(&ACCESSES);
        let cycle = cycle.filter(|(_, bit)| self.cycle & bit != 0);
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
