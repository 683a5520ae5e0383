//! UIO: the maps that a driver offers to user space, or a BAR of its function.
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use keepup_sys::PAGE_BYTES;
use keepup_sys::register::RegisterMap;

use super::load::{Loads, bar};
use super::{Method, RegisterError, Target, cannot_open, function_directory, into_io_error};
use crate::device::uio_device;
use crate::target::{UioDevice, UioRegion};

/// Hint for a missing device.
const MISSING: &str =
    "list the devices with ls /sys/class/uio; create one for a PCI function with --bind uio_pci_generic";

/// All methods of a UIO device.
pub(super) fn device(
    target: &Target,
    root: &Path,
    device: &UioDevice,
    region: Option<UioRegion>,
    writes: bool,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let number = match device {
        UioDevice::Number(number) => *number,
        UioDevice::Function(function) => uio_number(target, root, function)?,
    };
    let class = root.join(format!("sys/class/uio/uio{number}"));
    std::fs::metadata(&class).map_err(|source| cannot_open(target, &class, source, MISSING))?;
    match region {
        Some(UioRegion::Bar(index)) => {
            let function = pci_function(target, root, number)?;
            bar(target, root, &function, index, writes)
        }
        Some(UioRegion::Map(index)) => map(target, root, number, index, writes),
        None => map(target, root, number, 0, writes),
    }
}

/// Number of a function's UIO device.
fn uio_number(target: &Target, root: &Path, function: &str) -> Result<u32, RegisterError> {
    let path = function_directory(target, root, function)?.join("uio");
    let entries = std::fs::read_dir(&path).map_err(|source| cannot_open(target, &path, source, MISSING))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let number = names.filter_map(|name| name.strip_prefix("uio")?.parse().ok()).min();
    number.ok_or_else(|| RegisterError::Driver {
        target: target.to_string(),
        what: "the function's driver created no UIO device".into(),
        hint: MISSING.into(),
    })
}

/// PCI function of a UIO device.
fn pci_function(target: &Target, root: &Path, number: u32) -> Result<String, RegisterError> {
    let device = uio_device(root, number);
    let path =
        std::fs::canonicalize(&device).map_err(|source| cannot_open(target, &device, source, MISSING))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match root.join("sys/bus/pci/devices").join(&name).exists() {
        true => Ok(name),
        false => Err(RegisterError::Driver {
            target: target.to_string(),
            what: format!("it belongs to {name}, which is not a PCI function and has no BARs"),
            hint: format!("read a map of the driver: uio:{number}/map0"),
        }),
    }
}

/// A map of a driver. Map N begins at page N of the device file.
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
    let map = map.map_err(|why| match into_io_error(why) {
        // The kernel maps whole pages only.
        source if source.kind() == std::io::ErrorKind::InvalidInput && bytes < PAGE_BYTES as u64 => {
            RegisterError::Span {
                target: target.to_string(),
                what: format!("map{index} has {bytes} bytes, and the kernel maps at least {PAGE_BYTES}"),
                hint: format!("bypass the driver and read a BAR: uio:{number}/bar0"),
            }
        }
        source => RegisterError::Access { target: target.to_string(), method: "mmap".into(), source },
    })?;
    Ok(vec![Box::new(Loads::within(map, base, "mmap"))])
}

/// The error for a missing map. Its hint lists the existing maps.
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
            format!("bypass the driver and read a BAR: uio:{number}/bar0"),
        ),
        false => (format!("{driver} offers no such map"), format!("choose one of {}", names.join(", "))),
    };
    RegisterError::Span { target: target.to_string(), what, hint }
}

#[cfg(test)]
#[path = "uio_tests.rs"]
mod tests;
