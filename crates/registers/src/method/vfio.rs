//! A BAR of a function that VFIO has: mapped, by calls on the same file, and by the card's own DMA.
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
use super::{Method, RegisterError, Target, TargetProfile, answer, cannot_open, directory};
use crate::profile::DmaProfile;

/// Where the command register of a configuration space is, and its bits (PCI Local Bus 3.0, 6.2.2).
const COMMAND: u64 = 4;
const MEMORY_SPACE: u16 = 1 << 1;
const BUS_MASTER: u16 = 1 << 2;

/// A function that is open.
struct Function {
    /// The IOMMU's, for memory that the function is to reach.
    container: Container,
    file: File,
    /// Where the configuration space begins in the file.
    config: u64,
}

/// All ways of reading a BAR.
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
            hint: "lspci -v tells which BARs the function has".into(),
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
            what: "the function does not answer to its addresses (memory space is off in its command)".into(),
            hint: "it is asleep or was not reset: lspci -vv, dmesg".into(),
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
    RegisterError::Access { target: target.to_string(), method: method.into(), source: answer(why) }
}

fn io_error(source: std::io::Error) -> SysError {
    SysError::Call { action: "use the function", source }
}

/// Opens a function that is bound to a driver of VFIO.
fn open(target: &Target, root: &Path, function: &str) -> Result<Function, RegisterError> {
    let directory = directory(target, root, function)?;
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
            "the function is in no IOMMU group: there is no IOMMU, or it is off".into(),
            "intel_iommu=on or amd_iommu=on for the kernel, and VT-d or AMD-Vi in the firmware",
        )
    })?;
    let bind = "--bind vfio-pci binds it for as long as it is read, after modprobe vfio-pci";
    match link("driver") {
        Some(driver) if driver.contains("vfio") => {}
        Some(driver) => {
            return Err(wrong(format!("the function is bound to {driver}, not to vfio-pci"), bind));
        }
        None => return Err(wrong("the function is bound to no driver, not to vfio-pci".into(), bind)),
    }
    let cannot = |path: &Path, why: SysError| {
        let path = path.to_owned();
        cannot_open(target, &path, file_error(why), "modprobe vfio-pci; ls /dev/vfio lists the groups")
    };
    let path = root.join("dev/vfio/vfio");
    let container = Container::open(&path).map_err(|why| cannot(&path, why))?;
    let path = root.join("dev/vfio").join(&group);
    let of = Group::open(&path).map_err(|why| cannot(&path, why))?;
    let failed = |why| access(target, "vfio", why);
    if !of.is_viable().map_err(failed)? {
        return Err(wrong(
            format!("IOMMU group {group} is not viable: another function of it is bound to another driver"),
            &format!(
                "ls -l /sys/kernel/iommu_groups/{group}/devices/*/driver; all of them to vfio-pci, or none"
            ),
        ));
    }
    container.take(&of).map_err(failed)?;
    let file = of.device(function).map_err(failed)?;
    let config = region(file.as_fd(), CONFIG_REGION).map_err(failed)?.offset;
    Ok(Function { container, file, config })
}

/// The system's answer to opening a file.
fn file_error(why: SysError) -> std::io::Error {
    match why {
        SysError::File { source, .. } => source,
        other => answer(other),
    }
}

fn command(file: &File, config: u64) -> std::io::Result<u16> {
    let mut command = [0; 2];
    file.read_exact_at(&mut command, config + COMMAND)?;
    Ok(u16::from_le_bytes(command))
}

/// A function whose own DMA is used: set up when first asked, so that who does not use it leaves no trace.
struct Card {
    function: Function,
    bar: Region,
    dma: DmaProfile,
    ready: Option<Ready>,
}

/// What DMA needs.
struct Ready {
    map: RegisterMap,
    buffer: DmaBuffer,
    /// The command register as it was.
    command: u16,
}

impl Card {
    fn ready(&mut self) -> std::io::Result<&mut Ready> {
        if self.ready.is_none() {
            let Function { container, file, config } = &self.function;
            let map = map(file, &self.bar, true).map_err(answer)?;
            let buffer = DmaBuffer::new(container, self.dma.bus_address(), self.dma.memory_bytes as usize);
            let buffer = buffer.map_err(answer)?;
            let before = command(file, *config)?;
            file.write_all_at(&(before | BUS_MASTER).to_le_bytes(), config + COMMAND)?;
            self.ready = Some(Ready { map, buffer, command: before });
        }
        self.ready.as_mut().ok_or_else(|| std::io::Error::other("DMA is not ready"))
    }
}

impl Hardware for Card {
    fn load(&mut self, offset: u64, width: Width) -> std::io::Result<u64> {
        self.ready()?.map.value(offset, width).map_err(answer)
    }

    fn store(&mut self, offset: u64, width: Width, value: u64) -> std::io::Result<()> {
        self.ready()?.map.write(offset, width, value).map_err(answer)
    }

    fn bus_address(&mut self) -> std::io::Result<u64> {
        Ok(self.ready()?.buffer.iova())
    }

    fn put(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.ready()?.buffer.put(0, data).map_err(answer)
    }

    fn take(&mut self, data: &mut [u8]) -> std::io::Result<()> {
        self.ready()?.buffer.take(0, data).map_err(answer)
    }
}

impl Drop for Card {
    /// Puts the command register back before the memory is taken from the function.
    fn drop(&mut self) {
        if let Some(ready) = self.ready.take() {
            let place = self.function.config + COMMAND;
            let _ = self.function.file.write_all_at(&ready.command.to_le_bytes(), place);
        }
    }
}
