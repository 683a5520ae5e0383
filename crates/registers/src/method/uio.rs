//! Registers that a driver offers to user space (UIO): its maps, or, where it offers none, a BAR of its
//! function.
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use keepup_sys::PAGE_BYTES;
use keepup_sys::register::RegisterMap;

use super::load::{Loads, bar};
use super::{Method, RegisterError, Target, answer, cannot_open, directory};
use crate::device::uio_device;
use crate::target::{UioDevice, UioRegion};

/// Hint where a device is missing.
const MISSING: &str =
    "ls /sys/class/uio lists the devices; --bind uio_pci_generic makes one of a PCI function";

/// All ways of reading a UIO device.
pub(super) fn device(
    target: &Target,
    root: &Path,
    device: &UioDevice,
    region: Option<UioRegion>,
    writes: bool,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let number = match device {
        UioDevice::Number(number) => *number,
        UioDevice::Function(function) => of_function(target, root, function)?,
    };
    let class = root.join(format!("sys/class/uio/uio{number}"));
    std::fs::metadata(&class).map_err(|source| cannot_open(target, &class, source, MISSING))?;
    match region {
        Some(UioRegion::Bar(index)) => {
            let function = function_of(target, root, number)?;
            bar(target, root, &function, index, writes)
        }
        Some(UioRegion::Map(index)) => map(target, root, number, index, writes),
        None => map(target, root, number, 0, writes),
    }
}

/// The number of the UIO device that a function's driver made.
fn of_function(target: &Target, root: &Path, function: &str) -> Result<u32, RegisterError> {
    let path = directory(target, root, function)?.join("uio");
    let entries = std::fs::read_dir(&path).map_err(|source| cannot_open(target, &path, source, MISSING))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let number = names.filter_map(|name| name.strip_prefix("uio")?.parse().ok()).min();
    number.ok_or_else(|| RegisterError::Driver {
        target: target.to_string(),
        what: "the function's driver made no UIO device".into(),
        hint: MISSING.into(),
    })
}

/// The PCI function that a UIO device belongs to.
fn function_of(target: &Target, root: &Path, number: u32) -> Result<String, RegisterError> {
    let device = uio_device(root, number);
    let path =
        std::fs::canonicalize(&device).map_err(|source| cannot_open(target, &device, source, MISSING))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match root.join("sys/bus/pci/devices").join(&name).exists() {
        true => Ok(name),
        false => Err(RegisterError::Driver {
            target: target.to_string(),
            what: format!("it belongs to {name}, which is no PCI function and has no BARs"),
            hint: format!("uio:{number}/map0, if its driver offers maps"),
        }),
    }
}

/// A map of a driver: at so many pages of its file as it has maps before it.
fn map(
    target: &Target,
    root: &Path,
    number: u32,
    index: u8,
    writes: bool,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let maps = root.join(format!("sys/class/uio/uio{number}/maps"));
    let place = maps.join(format!("map{index}"));
    let read = |name: &str| {
        let text = std::fs::read_to_string(place.join(name)).ok()?;
        u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
    };
    let Some(bytes) = read("size") else { return Err(no_map(target, root, number, &maps)) };
    let base = read("offset").unwrap_or(0);
    let path = PathBuf::from(format!("dev/uio{number}"));
    let path = root.join(path);
    let file = File::options().read(true).write(writes).open(&path);
    let file = file.map_err(|source| cannot_open(target, &path, source, MISSING))?;
    let new = if writes { RegisterMap::writable } else { RegisterMap::new };
    let map = new(file.as_fd(), u64::from(index) * PAGE_BYTES as u64, (base + bytes) as usize);
    let map = map.map_err(|why| match answer(why) {
        // The kernel maps whole pages, and refuses registers that are less or lie across their bounds.
        source if source.kind() == std::io::ErrorKind::InvalidInput && bytes < PAGE_BYTES as u64 => {
            RegisterError::Span {
                target: target.to_string(),
                what: format!("map{index} has {bytes} bytes, and the kernel maps no less than {PAGE_BYTES}"),
                hint: format!("uio:{number}/bar0 reads a PCI function's BAR without its driver's help"),
            }
        }
        source => RegisterError::Access { target: target.to_string(), method: "mmap".into(), source },
    })?;
    Ok(vec![Box::new(Loads::within(map, base, "mmap"))])
}

/// Why there is no such map, and what there is.
fn no_map(target: &Target, root: &Path, number: u32, maps: &Path) -> RegisterError {
    let entries = std::fs::read_dir(maps).into_iter().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    let name = std::fs::read_to_string(root.join(format!("sys/class/uio/uio{number}/name")));
    let driver = name.map_or_else(|_| "its driver".into(), |name| name.trim().to_owned());
    let (what, hint) = match names.is_empty() {
        true => (
            format!("{driver} offers no maps"),
            format!("uio:{number}/bar0 reads a BAR of the function that it is bound to"),
        ),
        false => (format!("{driver} offers no such map"), format!("it offers {}", names.join(", "))),
    };
    RegisterError::Span { target: target.to_string(), what, hint }
}

#[cfg(test)]
#[path = "uio_tests.rs"]
mod tests;
