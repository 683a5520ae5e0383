//! PCI functions under the control of this process, through VFIO: containers, groups, regions and
//! DMA memory.
//!
//! Numbers and structures are those of linux/vfio.h. Invariant: memory that a device may write to
//! is never accessed through a reference, and is freed only after it is unmapped from the device.
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::{PAGE_BYTES, SysError};

/// `VFIO_TYPE` is ';' and `VFIO_BASE` 100; all calls are `_IO`, which has neither size nor direction.
const fn call(number: u32) -> u32 {
    0x3b << 8 | (100 + number)
}

const GET_API_VERSION: u32 = call(0);
const CHECK_EXTENSION: u32 = call(1);
const SET_IOMMU: u32 = call(2);
const GROUP_GET_STATUS: u32 = call(3);
const GROUP_SET_CONTAINER: u32 = call(4);
const GROUP_GET_DEVICE_FD: u32 = call(6);
const DEVICE_GET_REGION_INFO: u32 = call(8);
const IOMMU_MAP_DMA: u32 = call(13);
const IOMMU_UNMAP_DMA: u32 = call(14);

/// `VFIO_API_VERSION`.
const API_VERSION: i32 = 0;
/// `VFIO_TYPE1v2_IOMMU`.
const TYPE1V2: libc::c_ulong = 3;
/// `VFIO_GROUP_FLAGS_VIABLE`.
const VIABLE: u32 = 1;
/// `VFIO_REGION_INFO_FLAG_READ`, `_WRITE`, `_MMAP`.
const REGION_READ: u32 = 1;
const REGION_WRITE: u32 = 2;
const REGION_MMAP: u32 = 4;
/// `VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE`: access by the device.
const DMA_READ_WRITE: u32 = 3;

/// Region index of a function's configuration space (`VFIO_PCI_CONFIG_REGION_INDEX`); BARs have
/// their own numbers.
pub const CONFIG_REGION: u32 = 7;

/// `struct vfio_group_status`.
#[repr(C)]
#[derive(Default)]
struct GroupStatus {
    argsz: u32,
    flags: u32,
}

/// `struct vfio_region_info`.
#[repr(C)]
#[derive(Default)]
struct RegionInfo {
    argsz: u32,
    flags: u32,
    index: u32,
    cap_offset: u32,
    size: u64,
    offset: u64,
}

/// `struct vfio_iommu_type1_dma_map`.
#[repr(C)]
struct DmaMap {
    argsz: u32,
    flags: u32,
    vaddr: u64,
    iova: u64,
    size: u64,
}

/// `struct vfio_iommu_type1_dma_unmap`.
#[repr(C)]
struct DmaUnmap {
    argsz: u32,
    flags: u32,
    iova: u64,
    size: u64,
}

fn open(path: &Path) -> Result<OwnedFd, SysError> {
    let file = File::options().read(true).write(true).open(path);
    let file = file.map_err(|source| SysError::File { action: "open", path: path.into(), source })?;
    Ok(file.into())
}

/// Converts the return value of a call to a result.
fn answered(answer: libc::c_int, action: &'static str) -> Result<libc::c_int, SysError> {
    match answer {
        0.. => Ok(answer),
        _ => Err(SysError::Call { action, source: io::Error::last_os_error() }),
    }
}

/// Call with a numeric argument.
fn with_number(fd: &OwnedFd, call: u32, number: libc::c_ulong) -> libc::c_int {
    // SAFETY: these calls read no memory of this process; whatever the number, they answer with an error at
    // worst.
    unsafe { libc::ioctl(fd.as_raw_fd(), call as libc::Ioctl, number) }
}

/// IOMMU group of functions that cannot be isolated from each other, as `/dev/vfio/N`. One
/// program at a time can open it.
#[derive(Debug)]
pub struct Group {
    fd: OwnedFd,
}

impl Group {
    /// Opens a group.
    ///
    /// # Errors
    /// The kernel's: EBUSY if another program has it, EPERM for a group without an IOMMU.
    pub fn open(path: &Path) -> Result<Self, SysError> {
        Ok(Self { fd: open(path)? })
    }

    /// Whether all of its functions are bound to VFIO or to no driver.
    ///
    /// # Errors
    /// The kernel's.
    pub fn is_viable(&self) -> Result<bool, SysError> {
        let mut status = GroupStatus { argsz: size_of::<GroupStatus>() as u32, ..GroupStatus::default() };
        // SAFETY: the structure lives through the call and says how large it is.
        let answer =
            unsafe { libc::ioctl(self.fd.as_raw_fd(), GROUP_GET_STATUS as libc::Ioctl, &raw mut status) };
        answered(answer, "ask for the state of the IOMMU group")?;
        Ok(status.flags & VIABLE != 0)
    }

    /// Opens a function of the group by its address, such as `0000:00:04.0`, and resets it if it
    /// supports that. The group stays in use until this is closed and all its mappings are gone.
    ///
    /// # Errors
    /// The kernel's: EINVAL for a function outside the group, or a group without a container.
    pub fn device(&self, function: &str) -> Result<File, SysError> {
        let action = "open the function through its IOMMU group";
        let name =
            std::ffi::CString::new(function).map_err(|why| SysError::Call { action, source: why.into() })?;
        // SAFETY: the kernel reads the name up to its end, which `CString` has.
        let answer =
            unsafe { libc::ioctl(self.fd.as_raw_fd(), GROUP_GET_DEVICE_FD as libc::Ioctl, name.as_ptr()) };
        let fd = answered(answer, action)?;
        // SAFETY: the call created this descriptor for this process alone.
        Ok(unsafe { File::from_raw_fd(fd) })
    }
}

/// Set of mappings from bus addresses to memory: `/dev/vfio/vfio`, with a type 1 IOMMU.
#[derive(Debug)]
pub struct Container {
    fd: OwnedFd,
}

impl Container {
    /// Opens a new container.
    ///
    /// # Errors
    /// The kernel's; another version of VFIO; no type 1 IOMMU.
    pub fn open(path: &Path) -> Result<Self, SysError> {
        let container = Self { fd: open(path)? };
        let version = answered(with_number(&container.fd, GET_API_VERSION, 0), "ask for VFIO's version")?;
        if version != API_VERSION {
            let what = format!("unsupported VFIO version {version}: keepup supports {API_VERSION}");
            return Err(SysError::Invalid { what });
        }
        let kind = with_number(&container.fd, CHECK_EXTENSION, TYPE1V2);
        match answered(kind, "ask for VFIO's kinds of IOMMUs")? {
            0 => Err(SysError::Invalid { what: "VFIO offers no IOMMU of type 1".into() }),
            _ => Ok(container),
        }
    }

    /// Adds a group and sets its IOMMU type.
    ///
    /// # Errors
    /// The kernel's: EINVAL for a group that is not viable.
    pub fn take(&self, group: &Group) -> Result<(), SysError> {
        let number: libc::c_int = self.fd.as_raw_fd();
        // SAFETY: the kernel reads the number of the container, which lives through the call.
        let answer = unsafe {
            libc::ioctl(group.fd.as_raw_fd(), GROUP_SET_CONTAINER as libc::Ioctl, &raw const number)
        };
        answered(answer, "put the IOMMU group into a container")?;
        answered(with_number(&self.fd, SET_IOMMU, TYPE1V2), "choose an IOMMU of type 1")?;
        Ok(())
    }
}

/// Region of a function: a BAR, or its configuration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Size, bytes; 0 if the function has no such region.
    pub bytes: u64,
    /// Offset in the function's file, for calls and mappings.
    pub offset: u64,
    /// Whether it can be read by calls.
    pub is_readable: bool,
    /// Whether it can be written by calls.
    pub is_writable: bool,
    /// Whether it can be mapped.
    pub is_mappable: bool,
}

/// Queries a region of a function.
///
/// # Errors
/// The kernel's: EINVAL for an invalid index.
pub fn region(device: BorrowedFd<'_>, index: u32) -> Result<Region, SysError> {
    let mut info = RegionInfo { argsz: size_of::<RegionInfo>() as u32, index, ..RegionInfo::default() };
    // SAFETY: the structure lives through the call and says how large it is.
    let answer =
        unsafe { libc::ioctl(device.as_raw_fd(), DEVICE_GET_REGION_INFO as libc::Ioctl, &raw mut info) };
    answered(answer, "ask for a region of the function")?;
    let has = |flag| info.flags & flag != 0;
    Ok(Region {
        bytes: info.size,
        offset: info.offset,
        is_readable: has(REGION_READ),
        is_writable: has(REGION_WRITE),
        is_mappable: has(REGION_MMAP),
    })
}

/// DMA memory of this process for the functions of a container.
#[derive(Debug)]
pub struct DmaBuffer {
    container: OwnedFd,
    base: NonNull<u8>,
    bytes: usize,
    iova: u64,
}

impl DmaBuffer {
    /// Allocates at least this many bytes and maps them at the bus address `iova`, a multiple of
    /// the page size.
    ///
    /// # Errors
    /// The kernel's: ENOMEM above the locked-memory limit, EINVAL for an address that is reserved
    /// or beyond the IOMMU.
    pub fn new(container: &Container, iova: u64, bytes: usize) -> Result<Self, SysError> {
        let failed = |action, source| SysError::Call { action, source };
        let action = "have memory for DMA";
        let bytes = bytes.max(1).next_multiple_of(PAGE_BYTES);
        let shared = container.fd.try_clone().map_err(|why| failed(action, why))?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE) };
        let base = base.map_err(|why| failed(action, why.into()))?;
        let base = NonNull::new(base.cast::<u8>());
        let base = base.ok_or_else(|| failed(action, io::Error::other("address 0")))?;
        let map = DmaMap {
            argsz: size_of::<DmaMap>() as u32,
            flags: DMA_READ_WRITE,
            vaddr: base.as_ptr() as u64,
            iova,
            size: bytes as u64,
        };
        // SAFETY: the structure outlives the call; the memory that it names is ours, is accessed
        // through pointers alone, and lives until `drop` has unmapped it from the device.
        let answer = unsafe { libc::ioctl(shared.as_raw_fd(), IOMMU_MAP_DMA as libc::Ioctl, &raw const map) };
        if let Err(why) = answered(answer, "map memory for DMA") {
            // SAFETY: the mapping is ours, and the device does not have it.
            let _ = unsafe { munmap(base.as_ptr().cast(), bytes) };
            return Err(why);
        }
        Ok(Self { container: shared, base, bytes, iova })
    }

    /// Bus address.
    pub fn iova(&self) -> u64 {
        self.iova
    }

    /// Size, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn place(&self, at: usize, bytes: usize) -> Result<*mut u8, SysError> {
        match at.checked_add(bytes).is_some_and(|end| end <= self.bytes) {
            // SAFETY: within the memory, as checked.
            true => Ok(unsafe { self.base.as_ptr().add(at) }),
            false => Err(SysError::Invalid {
                what: format!("{bytes} bytes from {at} on reach beyond the {} for DMA", self.bytes),
            }),
        }
    }

    /// Copies data in; the device should not be accessing the memory.
    ///
    /// # Errors
    /// The data is out of range.
    pub fn put(&self, at: usize, data: &[u8]) -> Result<(), SysError> {
        let place = self.place(at, data.len())?;
        // SAFETY: within the memory, as checked, and no reference to it exists. If the device
        // writes at the same time, the bytes afterwards are from either source: both are plain
        // data.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), place, data.len()) };
        Ok(())
    }

    /// Copies data out; the device should not be accessing the memory.
    ///
    /// # Errors
    /// The data is out of range.
    pub fn take(&self, at: usize, data: &mut [u8]) -> Result<(), SysError> {
        let place = self.place(at, data.len())?;
        // SAFETY: as in `put`.
        unsafe { std::ptr::copy_nonoverlapping(place, data.as_mut_ptr(), data.len()) };
        Ok(())
    }
}

impl Drop for DmaBuffer {
    fn drop(&mut self) {
        let mut unmap = DmaUnmap {
            argsz: size_of::<DmaUnmap>() as u32,
            flags: 0,
            iova: self.iova,
            size: self.bytes as u64,
        };
        // SAFETY: the structure lives through the call.
        let answer = unsafe {
            libc::ioctl(self.container.as_raw_fd(), IOMMU_UNMAP_DMA as libc::Ioctl, &raw mut unmap)
        };
        // Memory that the device may still have mapped is leaked until the process ends.
        if answer == 0 {
            // SAFETY: the mapping is ours, the device no longer has it, and no reference to it
            // remains.
            let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
        }
    }
}

#[cfg(test)]
#[path = "vfio_tests.rs"]
mod tests;
