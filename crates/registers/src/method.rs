//! Ways of reading registers: one contract, one file for each way.
//!
//! Invariant: reading a way writes nothing, unless the target's profile says how the card moves data and the
//! way is that; what does not lie within the target is refused before anything is accessed.
mod calls;
mod dma;
mod ipbus;
mod load;
mod store;
mod transfer;
mod uio;
mod vfio;
mod vme;

use std::path::{Path, PathBuf};

use keepup_sys::register::{Span, Width};

use super::error::{RegisterError, answer};
use super::profile::TargetProfile;
use super::target::Target;
pub use store::Store;

/// One way of reading a target's registers.
pub(super) trait Method {
    /// Its name, unique within the target.
    fn name(&self) -> &'static str;

    /// Size of the target, bytes.
    fn bytes(&self) -> u64;

    /// Most registers of a width in one transfer, if there is a limit.
    fn words_max(&self, _width: Width) -> Option<u64> {
        None
    }

    /// Whether an offset means a register; else it is one into the card's memory, which the way moves.
    fn has_registers(&self) -> bool {
        true
    }

    /// Whether it writes, one register again and again, instead of reading.
    fn is_write(&self) -> bool {
        false
    }

    /// Whether it is a loop of loads, whose own cost the same loop over memory shows.
    fn is_load_loop(&self) -> bool {
        false
    }

    /// Makes ready, and checks, what is no part of reading.
    fn prepare(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    /// Reads a span, as fast as this way can.
    fn read(&mut self, span: &Span) -> std::io::Result<()>;

    /// Reads a span so many times.
    fn repeat(&mut self, span: &Span, times: u64) -> std::io::Result<()> {
        (0..times).try_for_each(|_| self.read(span))
    }

    /// Reads a span and keeps what was read.
    fn values(&mut self, span: &Span, values: &mut Vec<u64>) -> std::io::Result<()>;

    /// Ways of writing to one register of a width, which the profile lets be written
    /// ([`TargetProfile::allow`]): first by itself, then with a read after each. None where there is no
    /// mapping that can be written.
    fn writing(&self, _store: Store, _width: Width) -> std::io::Result<Vec<Box<dyn Method>>> {
        Ok(Vec::new())
    }
}

/// Memory of the control, bytes: the note's deepest register, 0x80000 locations of 4 bytes.
pub(super) const RAM_BYTES: u64 = 0x20_0000;

/// All ways of reading a target, which must be what its profile is for: by its number, and by what its
/// register of identity holds. `root` is `/` in earnest.
pub(super) fn open(
    target: &Target,
    root: &Path,
    profile: Option<&TargetProfile>,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    if let Some(profile) = profile {
        is_meant(target, root, profile)?;
    }
    let mut ways = ways(target, root, profile)?;
    if let (Some(profile), Some(way)) = (profile, ways.iter_mut().find(|way| way.has_registers())) {
        profile.check_within(way.bytes()).map_err(|what| RegisterError::Span {
            target: target.to_string(),
            what: format!("profile {}: {what}", profile.name),
            hint: "it is for another BAR or map, or for another device".into(),
        })?;
        profile.identity.map_or(Ok(()), |identity| identity.confirm(target, way.as_mut()))?;
    }
    Ok(ways)
}

/// Those of a target's ways that are named; all of them without a name.
pub(super) fn named(
    target: &Target,
    mut ways: Vec<Box<dyn Method>>,
    names: &[&str],
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let known: Vec<&str> = ways.iter().map(|way| way.name()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(RegisterError::Span {
            target: target.to_string(),
            what: format!("it cannot be read by {unknown:?}"),
            hint: format!("--method {}", known.join(", ")),
        });
    }
    ways.retain(|way| names.is_empty() || names.contains(&way.name()));
    Ok(ways)
}

/// Whether the target's device is the one that a profile is for.
fn is_meant(target: &Target, root: &Path, profile: &TargetProfile) -> Result<(), RegisterError> {
    let Some(expected) = &profile.id else { return Ok(()) };
    // Why there is no such function is better said by who opens it.
    if let Some(function) = target.function() {
        directory(target, root, function)?;
    }
    let found = super::device::look(target, root).id;
    if found.as_ref() == Some(expected) {
        return Ok(());
    }
    let found = found.map_or_else(|| "it does not say what it is".into(), |found| format!("it is {found}"));
    Err(RegisterError::Identity {
        target: target.to_string(),
        what: format!("profile {} is for {expected}, and {found}", profile.name),
        hint: "another --profile, or another target (lspci -nn -D)".into(),
    })
}

fn ways(
    target: &Target,
    root: &Path,
    profile: Option<&TargetProfile>,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    // Only what a profile names is ever written: without one nothing is even opened for it.
    let writes = profile.is_some_and(|profile| !profile.write.is_empty());
    match target {
        Target::Ram => {
            let memory = |method: &str| {
                load::memory(RAM_BYTES).map_err(|source| RegisterError::Access {
                    target: target.to_string(),
                    method: method.into(),
                    source,
                })
            };
            let mut all = load::mapped(target, memory("mmap")?, RAM_BYTES, "mmap", false)?;
            all.push(Box::new(calls::Calls::new(memory("pread")?, RAM_BYTES)));
            all.push(Box::new(transfer::Transfer::new(memory("transfer")?, RAM_BYTES)));
            Ok(all)
        }
        Target::Pci { function, bar } => load::bar(target, root, function, *bar, writes),
        Target::PciConfig { function } => calls::space(target, root, function),
        Target::Vfio { function, bar } => vfio::bar(target, root, function, *bar, profile),
        Target::Uio { device, region } => uio::device(target, root, device, *region, writes),
        Target::Vme { path, window } => vme::window(target, path, *window),
        Target::Ipbus { address } => ipbus::board(target, address),
        Target::IpbusSelf => ipbus::own(),
        Target::Xdma { path } => transfer::device(target, path),
    }
}

/// Directory of a PCI function in sysfs, if there is such a function.
pub(super) fn directory(target: &Target, root: &Path, function: &str) -> Result<PathBuf, RegisterError> {
    let path = root.join("sys/bus/pci/devices").join(function);
    match std::fs::metadata(&path) {
        Ok(_) => Ok(path),
        Err(source) => Err(RegisterError::Open {
            target: target.to_string(),
            path,
            source,
            hint: "lspci -D, or ls /sys/bus/pci/devices, lists the functions of this machine".into(),
        }),
    }
}

/// An error of opening a file, with what helps.
fn cannot_open(target: &Target, path: &Path, source: std::io::Error, missing: &str) -> RegisterError {
    let hint = match source.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "only root may: sudo, or CAP_SYS_ADMIN and the owner's rights"
        }
        std::io::ErrorKind::NotFound => missing,
        std::io::ErrorKind::ResourceBusy => "another program has it: lsof tells which",
        _ => "dmesg says more",
    };
    RegisterError::Open { target: target.to_string(), path: path.into(), source, hint: hint.into() }
}

#[cfg(test)]
#[path = "method_tests.rs"]
mod tests;
