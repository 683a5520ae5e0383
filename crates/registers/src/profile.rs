//! What is known of a device beyond its registers' places: who it is, what may be written, what reading would
//! change, how it moves data by itself. From a file in TOML, or built in.
//!
//! Invariant: nothing is written that a profile does not name; a profile that comes out of here fits
//! together.
use std::path::Path;

use keepup_error::Cause;
use keepup_sys::register::{Span, Width};
use serde::Deserialize;

use super::error::RegisterError;
use super::target::Target;

/// Profiles that are compiled in.
const BUILT_IN: [(&str, &str); 1] = [("edu", include_str!("../../../profiles/registers/edu.toml"))];
/// Largest profile, bytes; one has a few hundred.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Largest memory for DMA, bytes.
const DMA_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a register that is named by its place alone.
const PLACE_BYTES: u64 = 4;

/// What is known of a device.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TargetProfile {
    /// Its name.
    pub name: String,
    /// Vendor and device of PCI, as in `1234:11e8`; what it is used with must be that.
    pub id: Option<String>,
    /// A register that tells who answers.
    pub identity: Option<Identity>,
    /// What may be written.
    #[serde(default)]
    pub write: Vec<Places>,
    /// What reading changes.
    #[serde(default)]
    pub read_to_clear: Vec<Places>,
    /// How it moves data by itself.
    pub dma: Option<DmaProfile>,
}

/// A register that always reads the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Where, bytes.
    pub offset: u64,
    /// What it reads as.
    pub value: u64,
    /// In bits.
    #[serde(default = "usual_width")]
    pub width: u32,
}

/// Of a register that does not say how wide it is, bits.
fn usual_width() -> u32 {
    Width::default().bits()
}

/// A register of 32 bits by its place, or all bytes from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Places {
    /// A register of 32 bits.
    One(u64),
    /// Bytes.
    Range(Range),
}

/// Bytes from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
}

/// A register with its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// Where, bytes.
    pub offset: u64,
    /// In bits.
    pub width: u32,
}

/// How a card moves data between its memory and that of the machine, driven by four registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DmaProfile {
    /// Takes the address that data comes from.
    pub source: Register,
    /// Takes the address that data goes to.
    pub destination: Register,
    /// Takes the number of bytes.
    pub count: Register,
    /// Starts a transfer, and tells of it.
    pub command: Register,
    /// Bits of the command that start a transfer.
    pub start: u64,
    /// Bits of the command that make it one from the card to memory.
    pub from_card: u64,
    /// Bits that the command register reads as while one is under way.
    pub busy: u64,
    /// Address of the card's memory, as the card counts.
    pub memory: u64,
    /// Its size, bytes.
    pub memory_bytes: u64,
    /// What addresses and lengths must be multiples of, bytes.
    pub alignment: u64,
    /// Most bytes of one transfer.
    pub transfer_max: u64,
    /// Bits of the addresses that the card can name.
    pub address_bits: u32,
    /// Whether what is in the card's memory may be overwritten, which checks transfers both ways.
    #[serde(default)]
    pub may_fill: bool,
}

impl Places {
    fn first(self) -> u64 {
        match self {
            Self::One(at) => at,
            Self::Range(range) => range.from,
        }
    }

    fn last(self) -> u64 {
        match self {
            Self::One(at) => at.saturating_add(PLACE_BYTES - 1),
            Self::Range(range) => range.to,
        }
    }

    fn has(self, at: u64) -> bool {
        (self.first()..=self.last()).contains(&at)
    }
}

impl Register {
    /// Its width.
    pub fn width(self) -> Width {
        Width::of_bits(self.width).unwrap_or_default()
    }
}

impl TargetProfile {
    /// A built-in profile by its name, or one from a file.
    ///
    /// # Errors
    /// A name that stands for neither, a file that cannot be read, or that does not fit together.
    pub fn find(name: &str) -> Result<Self, RegisterError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        let known = BUILT_IN.map(|(known, _)| known).join(", ");
        let refused = |what: String| RegisterError::Profile {
            origin: name.into(),
            what: Cause::new(what)
                .with_hint(format!("a file in TOML, or one of the built-in profiles: {known}")),
        };
        let size = std::fs::metadata(Path::new(name)).map_err(|why| refused(why.to_string()))?;
        if !size.is_file() || size.len() > FILE_BYTES_MAX {
            return Err(refused(format!("no file, or one of more than {FILE_BYTES_MAX} bytes")));
        }
        Self::parse(name, &std::fs::read_to_string(name).map_err(|why| refused(why.to_string()))?)
    }

    /// A profile from its text; `origin` is named in errors.
    ///
    /// # Errors
    /// What is wrong with it, and where.
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
            return Err("name: it is empty".into());
        }
        if let Some(id) = &self.id {
            let is_number = |text: &str| {
                text.len() == 4 && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
            };
            let is_good = id.split_once(':').is_some_and(|(one, two)| is_number(one) && is_number(two));
            is_good.then_some(()).ok_or("id: vendor and device as lspci -n has them, as in \"1234:11e8\"")?;
        }
        if let Some(identity) = self.identity {
            Width::of_bits(identity.width).ok_or("identity: registers have 8, 16, 32 or 64 bits")?;
            if self.cleared_by(&identity.span(), &[]).is_some() {
                return Err("identity: read-to-clear names it".into());
            }
        }
        for (key, all) in [("write", &self.write), ("read-to-clear", &self.read_to_clear)] {
            if let Some(wrong) = all.iter().find(|places| places.first() > places.last()) {
                return Err(format!("{key}: a range from {:#x} to {:#x}", wrong.first(), wrong.last()));
            }
        }
        match &self.dma {
            Some(dma) => {
                dma.check().map_err(|what| format!("dma.{what}"))?;
                for (key, register) in dma.registers() {
                    if !self.may_write(register.offset, register.width()) {
                        return Err(format!("dma.{key}: write does not name {:#x}", register.offset));
                    }
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether a register may be written: each of its bytes is named.
    pub fn may_write(&self, offset: u64, width: Width) -> bool {
        let all = (0..width.bytes() as u64).map(|step| offset.checked_add(step));
        let is_named = |at: u64| self.write.iter().any(|places| places.has(at));
        all.into_iter().all(|at| at.is_some_and(is_named))
    }

    /// Refuses to write a register that is not named.
    ///
    /// # Errors
    /// Which register that is.
    pub fn allow(&self, target: &Target, offset: u64, width: Width) -> Result<(), RegisterError> {
        if self.may_write(offset, width) {
            return Ok(());
        }
        Err(RegisterError::Unsafe {
            target: target.to_string(),
            what: format!(
                "profile {} does not let {} bits at {offset:#x} be written",
                self.name,
                width.bits()
            ),
            hint: "its list `write` names what may be".into(),
        })
    }

    /// The first register that a read of `span` would change, without those that are `allowed` by their
    /// places.
    pub fn cleared_by(&self, span: &Span, allowed: &[u64]) -> Option<u64> {
        let end = span.offset.saturating_add(span.bytes().unwrap_or(u64::MAX));
        let touched = |places: &&Places| places.first() < end && places.last() >= span.offset;
        let hit = self.read_to_clear.iter().filter(touched);
        let mut left = hit.filter(|places| !allowed.iter().any(|at| places.has(*at)));
        left.next().map(|places| places.first().max(span.offset))
    }

    /// Refuses a read of `span` that would change a register which is not `allowed` by its place.
    ///
    /// # Errors
    /// Which register that is.
    pub fn spare(&self, target: &Target, span: &Span, allowed: &[u64]) -> Result<(), RegisterError> {
        let Some(place) = self.cleared_by(span, allowed) else { return Ok(()) };
        Err(RegisterError::Unsafe {
            target: target.to_string(),
            what: format!(
                "reading {} registers from {:#x} on would change the one at {place:#x}, as profile {} says",
                span.count, span.offset, self.name
            ),
            hint: format!("--offset and --depth beside it, or --read-to-clear {place:#x} to read it too"),
        })
    }

    /// Whether all that it names lies within `bytes`.
    ///
    /// # Errors
    /// What does not, in words.
    pub fn check_within(&self, bytes: u64) -> Result<(), String> {
        let last = |at: u64, width: Width| at.saturating_add(width.bytes() as u64 - 1);
        let identity = self.identity.map(|identity| ("identity", last(identity.offset, identity.width())));
        let dma = self.dma.iter().flat_map(DmaProfile::registers);
        let ends = dma.map(|(key, register)| (key, last(register.offset, register.width())));
        let lasts = |key, all: &[Places]| all.iter().map(|places| (key, places.last())).collect::<Vec<_>>();
        let places = [lasts("write", &self.write), lasts("read-to-clear", &self.read_to_clear)].concat();
        let mut all = identity.into_iter().chain(ends).chain(places);
        match all.find(|(_, last)| *last >= bytes) {
            None => Ok(()),
            Some((key, last)) => Err(format!("{key}: {last:#x} is beyond the {bytes} bytes of the target")),
        }
    }
}

impl DmaProfile {
    /// Its registers, by their keys.
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
            let width = width.ok_or_else(|| format!("{key}: registers have 8, 16, 32 or 64 bits"))?;
            let is_aligned = register.offset.is_multiple_of(width.bytes() as u64);
            if !is_aligned || register.offset > u64::MAX - 8 {
                return Err(format!("{key}: {:#x} is no place of {} bits", register.offset, width.bits()));
            }
        }
        let most = |register: Register| register.width().all_ones();
        let bits = [("start", self.start), ("from-card", self.from_card), ("busy", self.busy)];
        if let Some((key, _)) = bits.iter().find(|(_, bits)| *bits == 0 || *bits > most(self.command)) {
            return Err(format!("{key}: no bit, or more than the command register has"));
        }
        if !self.alignment.is_power_of_two() || self.alignment > 4096 {
            return Err("alignment: a power of two up to 4096".into());
        }
        if self.memory_bytes == 0 || self.memory_bytes > DMA_BYTES_MAX {
            return Err(format!("memory-bytes: 1 to {DMA_BYTES_MAX}"));
        }
        let end = self.memory.checked_add(self.memory_bytes);
        if end.is_none_or(|end| end > most(self.source).min(most(self.destination))) {
            return Err("memory: it ends beyond what its registers can name".into());
        }
        let is_good = |bytes: u64| bytes > 0 && bytes.is_multiple_of(self.alignment);
        if !is_good(self.transfer_max) || self.transfer_max > most(self.count) {
            return Err("transfer-max: a multiple of the alignment that the count register can name".into());
        }
        if !is_good(self.memory_bytes) || !self.memory.is_multiple_of(self.alignment) {
            return Err("memory, memory-bytes: multiples of the alignment".into());
        }
        let narrowest = self.source.width.min(self.destination.width);
        if !(16..=narrowest.min(48)).contains(&self.address_bits) {
            return Err("address-bits: 16 to 48, and no more than its registers have".into());
        }
        match self.memory_bytes.next_multiple_of(4096) <= self.bus_address() {
            true => Ok(()),
            false => Err("address-bits: not enough for a transfer of all its memory".into()),
        }
    }

    /// Where memory of the machine stands on the bus for it: the upper half of what it can name, but below 4
    /// GiB, as some of what is beyond is the interrupts'.
    pub fn bus_address(&self) -> u64 {
        1 << (self.address_bits.min(32) - 1)
    }
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
