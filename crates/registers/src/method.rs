//! Access methods: one trait, one file per method.
//!
//! Invariants: a read writes nothing, except by the method `dma`, which a profile must describe; registers
//! outside the target are refused before any access.
mod calls;
mod dma;
mod generic;
mod ipbus;
mod load;
mod store;
mod transfer;
mod uio;
mod vfio;
mod vme;

use std::path::{Path, PathBuf};

use keepup_sys::register::{Span, Width};

use super::error::{RegisterError, into_io_error};
use super::profile::TargetProfile;
use super::target::Target;
pub(super) use generic::{Generic, ReadPermit};
pub use store::RegisterWrite;

/// An access method of a target.
pub(super) trait Method {
    /// Name, unique within the target.
    fn name(&self) -> &'static str;

    /// Size of the target, bytes.
    fn bytes(&self) -> u64;

    /// Largest number of registers of a width in one transfer, if limited.
    fn words_max(&self, _width: Width) -> Option<u64> {
        None
    }

    /// Whether offsets address registers; otherwise they address the card's memory.
    fn has_registers(&self) -> bool {
        true
    }

    /// Whether the method writes one register repeatedly instead of reading.
    fn is_write(&self) -> bool {
        false
    }

    /// Whether the method is a loop of loads. Its overhead is measured with the same loop over memory.
    fn is_load_loop(&self) -> bool {
        false
    }

    /// Set-up and checks that are not part of a read.
    fn prepare(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    /// Reads a span as fast as this method can, and drops the values.
    fn read(&mut self, span: &Span) -> std::io::Result<()>;

    /// Reads a span `times` times.
    fn repeat(&mut self, span: &Span, times: u64) -> std::io::Result<()> {
        (0..times).try_for_each(|_| self.read(span))
    }

    /// Reads a span and returns its values.
    fn values(&mut self, span: &Span, values: &mut Vec<u64>) -> std::io::Result<()>;

    /// A second handle of the same registers, if the method can share them.
    fn second(&self) -> Option<Box<dyn Method>> {
        None
    }

    /// Methods of writing to one register, which the profile must allow ([`TargetProfile::check_write`]):
    /// first plain writes, then writes that are each read back. Empty without a writable mapping.
    fn write_methods(&self, _write: RegisterWrite, _width: Width) -> std::io::Result<Vec<Box<dyn Method>>> {
        Ok(Vec::new())
    }
}

/// Greatest depth, in registers.
pub(super) const DEPTH_MAX: u64 = 1 << 24;

/// Size of the target `ram`, bytes: the note's greatest depth, 0x80000 locations of 4 bytes.
pub(super) const RAM_BYTES: u64 = 0x20_0000;

/// Opens all methods of a target. Checks its PCI number and its identity register against the profile.
/// `root` is `/` except in tests.
pub(super) fn open(
    target: &Target,
    root: &Path,
    profile: Option<&TargetProfile>,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    if let Some(profile) = profile {
        check_id(target, root, profile)?;
    }
    let mut methods = methods(target, root, profile)?;
    let with_registers = methods.iter_mut().find(|method| method.has_registers());
    if let (Some(profile), Some(method)) = (profile, with_registers) {
        profile.check_within(method.bytes()).map_err(|what| RegisterError::Span {
            target: target.to_string(),
            what: format!("profile {}: {what}", profile.name),
            hint: "the profile belongs to another BAR or map, or to another device".into(),
        })?;
        profile.identity.map_or(Ok(()), |identity| identity.check(target, method.as_mut()))?;
    }
    Ok(methods)
}

/// The methods with the given names; all of them if `names` is empty.
pub(super) fn select(
    target: &Target,
    mut methods: Vec<Box<dyn Method>>,
    names: &[&str],
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let known: Vec<&str> = methods.iter().map(|method| method.name()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(RegisterError::Span {
            target: target.to_string(),
            what: format!("it has no access method {unknown:?}"),
            hint: format!("--method {}", known.join(", ")),
        });
    }
    methods.retain(|method| names.is_empty() || names.contains(&method.name()));
    Ok(methods)
}

/// Checks that the target's device has the PCI number of the profile.
fn check_id(target: &Target, root: &Path, profile: &TargetProfile) -> Result<(), RegisterError> {
    let Some(expected) = &profile.id else { return Ok(()) };
    // A missing function gets its own error.
    if let Some(function) = target.function() {
        function_directory(target, root, function)?;
    }
    let found = super::device::inspect(target, root).id;
    if found.as_ref() == Some(expected) {
        return Ok(());
    }
    let found =
        found.map_or_else(|| "this target has no PCI ID".into(), |found| format!("this device is {found}"));
    Err(RegisterError::Identity {
        target: target.to_string(),
        what: format!("profile {} is for {expected}, and {found}", profile.name),
        hint: "choose another --profile or another target (lspci -nn -D)".into(),
    })
}

fn methods(
    target: &Target,
    root: &Path,
    profile: Option<&TargetProfile>,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    // Without a writable register in the profile, nothing is opened for writing.
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
        Target::PciConfig { function } => calls::config_space(target, root, function),
        Target::Vfio { function, bar } => vfio::bar(target, root, function, *bar, profile),
        Target::Uio { device, region } => uio::device(target, root, device, *region, writes),
        Target::Vme { path, window } => vme::window(target, path, *window),
        Target::Ipbus { address } => ipbus::board(target, address),
        Target::IpbusSelf => ipbus::simulated(),
        Target::Xdma { path } => transfer::device(target, path),
    }
}

/// Directory of a PCI function in sysfs.
pub(super) fn function_directory(
    target: &Target,
    root: &Path,
    function: &str,
) -> Result<PathBuf, RegisterError> {
    let path = root.join("sys/bus/pci/devices").join(function);
    match std::fs::metadata(&path) {
        Ok(_) => Ok(path),
        Err(source) => Err(RegisterError::Open {
            target: target.to_string(),
            path,
            source,
            hint: "list the functions with lspci -D or ls /sys/bus/pci/devices".into(),
        }),
    }
}

/// An error of opening a file. `missing` is the hint if the file does not exist.
fn cannot_open(target: &Target, path: &Path, source: std::io::Error, missing: &str) -> RegisterError {
    let hint = match source.kind() {
        std::io::ErrorKind::PermissionDenied => "use sudo, or CAP_SYS_ADMIN and ownership of the file",
        std::io::ErrorKind::NotFound => missing,
        std::io::ErrorKind::ResourceBusy => "find the program that uses it with lsof",
        _ => "read the kernel's messages with dmesg",
    };
    RegisterError::Open { target: target.to_string(), path: path.into(), source, hint: hint.into() }
}

#[cfg(test)]
#[path = "method_tests.rs"]
mod tests;
