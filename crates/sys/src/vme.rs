//! Windows on a VME bus, through the kernel's driver `vme_user`.
//!
//! Numbers and structures are those of drivers/staging/vme_user/vme_user.h, Linux 6.1, which is
//! not installed with the kernel headers.
use std::fs::File;
use std::os::fd::AsRawFd;

use crate::SysError;

/// Settings of a master window: the bus range that its file shows, and the cycles it uses. The
/// numbers are those of the kernel's linux/vme.h.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Master {
    /// Whether it is enabled: 1 or 0.
    pub enable: u32,
    /// First address on the bus.
    pub address: u64,
    /// Size, bytes.
    pub bytes: u64,
    /// Address space: `VME_A16` 1, `VME_A24` 2, `VME_A32` 4, `VME_A64` 8, `VME_CRCSR` 0x10.
    pub space: u32,
    /// Cycles: `VME_SCT` 1, `VME_BLT` 2, `VME_MBLT` 4, with `VME_SUPER` 0x1000, `VME_USER` 0x2000, `VME_PROG`
    /// 0x4000, `VME_DATA` 0x8000.
    pub cycle: u32,
    /// Widest access: `VME_D8` 1, `VME_D16` 2, `VME_D32` 4, `VME_D64` 8, which is the size in
    /// bytes.
    pub width: u32,
}

/// Bits of `_IOC` of asm-generic/ioctl.h: direction, size, `VME_IOC_MAGIC` 0xAE, number.
const fn call(direction: u32, number: u32) -> u32 {
    direction << 30 | (size_of::<Master>() as u32) << 16 | 0xae << 8 | number
}

/// `VME_GET_MASTER`, `_IOR`.
const GET_MASTER: u32 = call(2, 3);
/// `VME_SET_MASTER`, `_IOW`.
const SET_MASTER: u32 = call(1, 4);

/// Reads the settings of a window.
///
/// # Errors
/// The kernel's: ENOTTY or EINVAL if the file is not a master window.
pub fn master(file: &File) -> Result<Master, SysError> {
    let mut window = Master::default();
    // SAFETY: the structure outlives the call; the call number encodes its size.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), GET_MASTER as libc::Ioctl, &raw mut window) };
    answered(answer, "ask for the settings of the window")?;
    Ok(window)
}

/// Changes a window. This affects all users of the window.
///
/// # Errors
/// The kernel's: EINVAL for settings that the bridge does not support.
pub fn set_master(file: &File, window: &Master) -> Result<(), SysError> {
    // SAFETY: the structure outlives the call; the call number encodes its size.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), SET_MASTER as libc::Ioctl, &raw const *window) };
    answered(answer, "set the window")
}

fn answered(answer: libc::c_int, action: &'static str) -> Result<(), SysError> {
    match answer {
        0.. => Ok(()),
        _ => Err(SysError::Call { action, source: std::io::Error::last_os_error() }),
    }
}

#[cfg(test)]
#[path = "vme_tests.rs"]
mod tests;
