//! Device profiles, from a TOML file or built in: identity, writable registers, registers that reading
//! changes, and the DMA engine.
//!
//! Invariants: only registers that a profile lists are written; a parsed profile is consistent.
use std::path::Path;

use keepup_error::Cause;
use keepup_sys::register::{Span, Width};
use serde::Deserialize;

use super::error::RegisterError;
use super::target::Target;

/// Built-in profiles.
const BUILT_IN: [(&str, &str); 1] = [("edu", include_str!("../../../profiles/registers/edu.toml"))];
/// Largest profile, bytes. Typical ones have a few hundred.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Largest card memory for DMA, bytes.
const DMA_BYTES_MAX: u64 = 64 << 20;
/// Size of a register that is listed only by its offset, bytes.
const REGISTER_BYTES: u64 = 4;

/// A device profile.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TargetProfile {
    /// Name.
    pub name: String,
    /// PCI vendor and device that the target must have, for example `1234:11e8`.
    pub id: Option<String>,
    /// A register that identifies the device.
    pub identity: Option<Identity>,
    /// Writable registers.
    #[serde(default)]
    pub write: Vec<RegisterRange>,
    /// Registers that reading changes.
    #[serde(default)]
    pub read_to_clear: Vec<RegisterRange>,
    /// DMA engine.
    pub dma: Option<DmaProfile>,
}

/// A register with a constant value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Offset, bytes.
    pub offset: u64,
    /// Value.
    pub value: u64,
    /// Width, bits.
    #[serde(default = "default_width")]
    pub width: u32,
}

/// Default width of a register, bits.
fn default_width() -> u32 {
    Width::default().bits()
}

/// A register of 32 bits by its offset, or a range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum RegisterRange {
    /// A register of 32 bits.
    Register(u64),
    /// A range of bytes.
    Bytes(ByteRange),
}

/// An inclusive range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByteRange {
    /// Offset of the first byte.
    pub from: u64,
    /// Offset of the last byte.
    pub to: u64,
}

/// A register with its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// Offset, bytes.
    pub offset: u64,
    /// Width, bits.
    pub width: u32,
}

/// A DMA engine that four registers drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DmaProfile {
    /// Register of the source address.
    pub source: Register,
    /// Register of the destination address.
    pub destination: Register,
    /// Register of the number of bytes.
    pub count: Register,
    /// Command and status register.
    pub command: Register,
    /// Command bits that start a transfer.
    pub start: u64,
    /// Command bits that select the direction from the card to host memory.
    pub from_card: u64,
    /// Status bits that are set during a transfer.
    pub busy: u64,
    /// Address of the card's memory on the card's bus.
    pub memory: u64,
    /// Size of the card's memory, bytes.
    pub memory_bytes: u64,
    /// Alignment of addresses and lengths, bytes.
    pub alignment: u64,
    /// Largest transfer, bytes.
    pub transfer_max: u64,
    /// Width of the host addresses that the card supports, bits.
    pub address_bits: u32,
    /// Whether the card's memory may be overwritten, to check transfers in both directions.
    #[serde(default)]
    pub may_fill: bool,
}

impl RegisterRange {
    fn first(self) -> u64 {
        match self {
            Self::Register(offset) => offset,
            Self::Bytes(range) => range.from,
        }
    }

    fn last(self) -> u64 {
        match self {
            Self::Register(offset) => offset.saturating_add(REGISTER_BYTES - 1),
            Self::Bytes(range) => range.to,
        }
    }

    fn contains(self, offset: u64) -> bool {
        (self.first()..=self.last()).contains(&offset)
    }
}

impl Register {
    /// Width; 32 bits if the value is invalid.
    pub fn width(self) -> Width {
        Width::of_bits(self.width).unwrap_or_default()
    }
}

impl TargetProfile {
    /// Returns a built-in profile, or reads a file.
    ///
    /// # Errors
    /// Neither a built-in profile nor a readable file, or an invalid file.
    pub fn find(name: &str) -> Result<Self, RegisterError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        let known = BUILT_IN.map(|(known, _)| known).join(", ");
        let refused = |what: String| RegisterError::Profile {
            origin: name.into(),
            what: Cause::new(what)
                .with_hint(format!("give a TOML file or one of the built-in profiles: {known}")),
        };
        let size = std::fs::metadata(Path::new(name)).map_err(|why| refused(why.to_string()))?;
        if !size.is_file() || size.len() > FILE_BYTES_MAX {
            return Err(refused(format!("not a regular file of at most {FILE_BYTES_MAX} bytes")));
        }
        Self::parse(name, &std::fs::read_to_string(name).map_err(|why| refused(why.to_string()))?)
    }

    /// Parses a profile. Errors name `origin`.
    ///
    /// # Errors
    /// An invalid profile, with the line of a syntax error.
    pub fn parse(origin: &str, text: &str) -> Result<Self, RegisterError> {
        let refused = |what: String| RegisterError::Profile { origin: origin.into(), what: what.into() };
        let profile: Self = toml::from_str(text).map_err(|why| {
            let line = why.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let line = line.map_or_else(String::new, |line| format!("line {line}: "));
            refused(format!("{line}{}", why.message()))
        })?;
        profile.check().map_err(refused)?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), String> {
        if self.name.trim().is_empty() {
            return Err("name: must not be empty".into());
        }
        if let Some(id) = &self.id {
            let is_number = |text: &str| {
                text.len() == 4 && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
            };
            let is_good = id.split_once(':').is_some_and(|(one, two)| is_number(one) && is_number(two));
            is_good.then_some(()).ok_or("id: not of the form \"1234:11e8\" (vendor:device, see lspci -n)")?;
        }
        if let Some(identity) = self.identity {
            Width::of_bits(identity.width).ok_or("identity: width must be 8, 16, 32 or 64 bits")?;
            if self.first_cleared(&identity.span(), &[]).is_some() {
                return Err("identity: read-to-clear lists the same register".into());
            }
        }
        for (key, all) in [("write", &self.write), ("read-to-clear", &self.read_to_clear)] {
            if let Some(wrong) = all.iter().find(|range| range.first() > range.last()) {
                return Err(format!("{key}: empty range from {:#x} to {:#x}", wrong.first(), wrong.last()));
            }
        }
        match &self.dma {
            Some(dma) => {
                dma.check().map_err(|what| format!("dma.{what}"))?;
                for (key, register) in dma.registers() {
                    if !self.may_write(register.offset, register.width()) {
                        return Err(format!("dma.{key}: write does not list {:#x}", register.offset));
                    }
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether a register is writable: `write` lists each of its bytes.
    pub fn may_write(&self, offset: u64, width: Width) -> bool {
        let all = (0..width.bytes() as u64).map(|step| offset.checked_add(step));
        let is_listed = |offset: u64| self.write.iter().any(|range| range.contains(offset));
        all.into_iter().all(|offset| offset.is_some_and(is_listed))
    }

    /// Checks that a register is writable.
    ///
    /// # Errors
    /// The profile does not list it.
    pub fn check_write(&self, target: &Target, offset: u64, width: Width) -> Result<(), RegisterError> {
        if self.may_write(offset, width) {
            return Ok(());
        }
        Err(RegisterError::Unsafe {
            target: target.to_string(),
            what: format!(
                "profile {} does not list the {} bits at {offset:#x} as writable",
                self.name,
                width.bits()
            ),
            hint: "add the register to the list `write` of the profile".into(),
        })
    }

    /// Offset of the first register that a read of `span` would change. `allowed` contains the offsets of
    /// registers that may change.
    pub fn first_cleared(&self, span: &Span, allowed: &[u64]) -> Option<u64> {
        let end = span.offset.saturating_add(span.bytes().unwrap_or(u64::MAX));
        let overlaps = |range: &&RegisterRange| range.first() < end && range.last() >= span.offset;
        let is_allowed = |range: &RegisterRange| allowed.iter().any(|offset| range.contains(*offset));
        let mut refused = self.read_to_clear.iter().filter(overlaps).filter(|range| !is_allowed(range));
        refused.next().map(|range| range.first().max(span.offset))
    }

    /// Checks that a read of `span` changes no register, except those at the `allowed` offsets.
    ///
    /// # Errors
    /// The read would change a register.
    pub fn check_read(&self, target: &Target, span: &Span, allowed: &[u64]) -> Result<(), RegisterError> {
        let Some(offset) = self.first_cleared(span, allowed) else { return Ok(()) };
        Err(RegisterError::Unsafe {
            target: target.to_string(),
            what: format!(
                "reading {} registers at {:#x} would change the one at {offset:#x}, according to profile {}",
                span.count, span.offset, self.name
            ),
            hint: format!(
                "exclude it with --offset and --depth, or allow it with --read-to-clear {offset:#x}"
            ),
        })
    }

    /// Checks that all registers of the profile lie within `bytes`.
    ///
    /// # Errors
    /// Key and offset of a register beyond them.
    pub fn check_within(&self, bytes: u64) -> Result<(), String> {
        let last = |at: u64, width: Width| at.saturating_add(width.bytes() as u64 - 1);
        let identity = self.identity.map(|identity| ("identity", last(identity.offset, identity.width())));
        let dma = self.dma.iter().flat_map(DmaProfile::registers);
        let ends = dma.map(|(key, register)| (key, last(register.offset, register.width())));
        let lasts =
            |key, all: &[RegisterRange]| all.iter().map(|range| (key, range.last())).collect::<Vec<_>>();
        let ranges = [lasts("write", &self.write), lasts("read-to-clear", &self.read_to_clear)].concat();
        let mut all = identity.into_iter().chain(ends).chain(ranges);
        match all.find(|(_, last)| *last >= bytes) {
            None => Ok(()),
            Some((key, last)) => Err(format!("{key}: {last:#x} is beyond the {bytes} bytes of the target")),
        }
    }
}

impl DmaProfile {
    /// Registers with their keys.
    fn registers(&self) -> [(&'static str, Register); 4] {
        [
            ("source", self.source),
            ("destination", self.destination),
            ("count", self.count),
            ("command", self.command),
        ]
    }

    fn check(&self) -> Result<(), String> {
        for (key, register) in self.registers() {
            let width = Width::of_bits(register.width);
            let width = width.ok_or_else(|| format!("{key}: width must be 8, 16, 32 or 64 bits"))?;
            let is_aligned = register.offset.is_multiple_of(width.bytes() as u64);
            if !is_aligned || register.offset > u64::MAX - 8 {
                return Err(format!("{key}: {:#x} is not aligned to {} bits", register.offset, width.bits()));
            }
        }
        let most = |register: Register| register.width().all_ones();
        let bits = [("start", self.start), ("from-card", self.from_card), ("busy", self.busy)];
        if let Some((key, _)) = bits.iter().find(|(_, bits)| *bits == 0 || *bits > most(self.command)) {
            return Err(format!("{key}: zero, or wider than the command register"));
        }
        if !self.alignment.is_power_of_two() || self.alignment > 4096 {
            return Err("alignment: must be a power of two up to 4096".into());
        }
        if self.memory_bytes == 0 || self.memory_bytes > DMA_BYTES_MAX {
            return Err(format!("memory-bytes: must be 1 to {DMA_BYTES_MAX}"));
        }
        let end = self.memory.checked_add(self.memory_bytes);
        if end.is_none_or(|end| end > most(self.source).min(most(self.destination))) {
            return Err("memory: its end exceeds the width of the address registers".into());
        }
        let is_good = |bytes: u64| bytes > 0 && bytes.is_multiple_of(self.alignment);
        if !is_good(self.transfer_max) || self.transfer_max > most(self.count) {
            return Err(
                "transfer-max: must be a multiple of the alignment and fit into the count register".into()
            );
        }
        if !is_good(self.memory_bytes) || !self.memory.is_multiple_of(self.alignment) {
            return Err("memory, memory-bytes: must be multiples of the alignment".into());
        }
        let narrowest = self.source.width.min(self.destination.width);
        if !(16..=narrowest.min(48)).contains(&self.address_bits) {
            return Err(
                "address-bits: must be 16 to 48, and at most the width of the address registers".into()
            );
        }
        match self.memory_bytes.next_multiple_of(4096) <= self.bus_address() {
            true => Ok(()),
            false => Err("address-bits: too few to transfer the whole memory".into()),
        }
    }

    /// Bus address of the host buffer: the start of the upper half of the card's address space, below 4 GiB
    /// because some addresses above belong to interrupts.
    pub fn bus_address(&self) -> u64 {
        1 << (self.address_bits.min(32) - 1)
    }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
