//! VFIO: a BAR, mapped, by system calls on the same file, and by the card's DMA.
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use keepup_measure::clock::SystemClock;
use keepup_sys::SysError;
use keepup_sys::register::{RegisterMap, Width};
use keepup_sys::vfio::{CONFIG_REGION, Container, DmaBuffer, Group, Region, region};

use super::calls::Calls;
use super::dma::{Dma, Hardware};
use super::load::Loads;
use super::{Method, RegisterError, Target, TargetProfile, cannot_open, function_directory, into_io_error};
use crate::profile::DmaProfile;

/// Offset of the command register in the configuration space, and its bits (PCI Local Bus 3.0, 6.2.2).
const COMMAND: u64 = 4;
const MEMORY_SPACE: u16 = 1 << 1;
const BUS_MASTER: u16 = 1 << 2;

/// An open function.
struct Function {
    /// IOMMU domain, for the DMA buffer.
    container: Container,
    file: File,
    /// Offset of the configuration space in the file.
    config: u64,
}

/// All methods of a BAR.
pub(super) fn bar(
    target: &Target,
    root: &Path,
    function: &str,
    bar: u8,
    profile: Option<&TargetProfile>,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let function = open(target, root, function)?;
    let failed = |why| access(target, "vfio", why);
    let found = region(function.file.as_fd(), bar.into()).map_err(failed)?;
    if found.bytes == 0 || !found.is_readable {
        return Err(RegisterError::Span {
            target: target.to_string(),
            what: format!("the function has no BAR {bar}"),
            hint: "list the function's BARs with lspci -v".into(),
        });
    }
    let shared = || function.file.try_clone().map_err(|why| access(target, "vfio", io_error(why)));
    let calls = Calls::within(shared()?, found.offset, found.bytes);
    // Ports cannot be mapped.
    if !found.is_mappable {
        return Ok(vec![Box::new(calls)]);
    }
    let command = command(&function.file, function.config).map_err(|why| failed(io_error(why)))?;
    if command & MEMORY_SPACE == 0 {
        return Err(RegisterError::Identity {
            target: target.to_string(),
            what: "memory space is disabled in its command register".into(),
            hint: "the device is in a low-power state or was not reset: lspci -vv, dmesg".into(),
        });
    }
    let writes = profile.is_some_and(|profile| !profile.write.is_empty());
    let map = map(&function.file, &found, writes).map_err(|why| access(target, "mmap", why))?;
    let mut all: Vec<Box<dyn Method>> = vec![Box::new(Loads::within(map, 0, "mmap")), Box::new(calls)];
    if let Some(dma) = profile.and_then(|profile| profile.dma) {
        let card = Card { function, bar: found, dma, ready: None };
        all.push(Box::new(Dma::new(dma, card, Arc::new(SystemClock))));
    }
    Ok(all)
}

fn map(file: &File, bar: &Region, writes: bool) -> Result<RegisterMap, SysError> {
    let new = if writes { RegisterMap::writable } else { RegisterMap::new };
    new(file.as_fd(), bar.offset, bar.bytes as usize)
}

fn access(target: &Target, method: &str, why: SysError) -> RegisterError {
    RegisterError::Access { target: target.to_string(), method: method.into(), source: into_io_error(why) }
}

fn io_error(source: std::io::Error) -> SysError {
    SysError::Call { action: "use the function", source }
}

/// Opens a function that is bound to a VFIO driver.
fn open(target: &Target, root: &Path, function: &str) -> Result<Function, RegisterError> {
    let directory = function_directory(target, root, function)?;
    let wrong = |what: String, hint: &str| RegisterError::Driver {
        target: target.to_string(),
        what,
        hint: hint.into(),
    };
    let link = |name: &str| {
        let path = std::fs::read_link(directory.join(name)).ok()?;
        path.file_name().map(|name| name.to_string_lossy().into_owned())
    };
    let group = link("iommu_group").ok_or_else(|| {
        wrong(
            "the function has no IOMMU group: the IOMMU is missing or disabled".into(),
            "boot the kernel with intel_iommu=on or amd_iommu=on, and enable VT-d or AMD-Vi in the firmware",
        )
    })?;
    let bind = "run modprobe vfio-pci, then bind the function during the test with --bind vfio-pci";
    match link("driver") {
        Some(driver) if driver.contains("vfio") => {}
        Some(driver) => {
            return Err(wrong(format!("the function is bound to {driver}, not to vfio-pci"), bind));
        }
        None => return Err(wrong("the function is not bound to vfio-pci, or to any driver".into(), bind)),
    }
    let cannot = |path: &Path, why: SysError| {
        let path = path.to_owned();
        let missing = "run modprobe vfio-pci; list the groups with ls /dev/vfio";
        cannot_open(target, &path, file_error(why), missing)
    };
    let path = root.join("dev/vfio/vfio");
    let container = Container::open(&path).map_err(|why| cannot(&path, why))?;
    let path = root.join("dev/vfio").join(&group);
    let of = Group::open(&path).map_err(|why| cannot(&path, why))?;
    let failed = |why| access(target, "vfio", why);
    if !of.is_viable().map_err(failed)? {
        return Err(wrong(
            format!("IOMMU group {group} is not viable: another function in it is bound to another driver"),
            &format!(
                "bind all functions of the group to vfio-pci: \
                 ls -l /sys/kernel/iommu_groups/{group}/devices/*/driver"
            ),
        ));
    }
    container.take(&of).map_err(failed)?;
    let file = of.device(function).map_err(failed)?;
    let config = region(file.as_fd(), CONFIG_REGION).map_err(failed)?.offset;
    Ok(Function { container, file, config })
}

/// The system's error of opening a file.
fn file_error(why: SysError) -> std::io::Error {
    match why {
        SysError::File { source, .. } => source,
        other => into_io_error(other),
    }
}

fn command(file: &File, config: u64) -> std::io::Result<u16> {
    let mut command = [0; 2];
    file.read_exact_at(&mut command, config + COMMAND)?;
    Ok(u16::from_le_bytes(command))
}

/// A card with a DMA engine. Set up at the first access, so that a measurement without DMA changes nothing.
struct Card {
    function: Function,
    bar: Region,
    dma: DmaProfile,
    ready: Option<DmaResources>,
}

/// Resources of DMA.
struct DmaResources {
    map: RegisterMap,
    buffer: DmaBuffer,
    /// Previous value of the command register.
    command: u16,
}

impl Card {
    fn ready(&mut self) -> std::io::Result<&mut DmaResources> {
        if self.ready.is_none() {
            let Function { container, file, config } = &self.function;
            let map = map(file, &self.bar, true).map_err(into_io_error)?;
            let buffer = DmaBuffer::new(container, self.dma.bus_address(), self.dma.memory_bytes as usize);
            let buffer = buffer.map_err(into_io_error)?;
            let before = command(file, *config)?;
            file.write_all_at(&(before | BUS_MASTER).to_le_bytes(), config + COMMAND)?;
            self.ready = Some(DmaResources { map, buffer, command: before });
        }
        self.ready.as_mut().ok_or_else(|| std::io::Error::other("DMA is not ready"))
    }
}

impl Hardware for Card {
    fn load(&mut self, offset: u64, width: Width) -> std::io::Result<u64> {
        self.ready()?.map.value(offset, width).map_err(into_io_error)
    }

    fn store(&mut self, offset: u64, width: Width, value: u64) -> std::io::Result<()> {
        self.ready()?.map.write(offset, width, value).map_err(into_io_error)
    }

    fn bus_address(&mut self) -> std::io::Result<u64> {
        Ok(self.ready()?.buffer.iova())
    }

    fn put(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.ready()?.buffer.put(0, data).map_err(into_io_error)
    }

    fn take(&mut self, data: &mut [u8]) -> std::io::Result<()> {
        self.ready()?.buffer.take(0, data).map_err(into_io_error)
    }
}

impl Drop for Card {
    /// Restores the command register, which stops DMA before the buffer is unmapped.
    fn drop(&mut self) {
        if let Some(ready) = self.ready.take() {
            let place = self.function.config + COMMAND;
            let _ = self.function.file.write_all_at(&ready.command.to_le_bytes(), place);
        }
    }
}
