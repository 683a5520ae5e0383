//! Wear of an NVMe device: log page 02h, SMART / Health Information, through the kernel's passthrough of
//! admin commands (linux/nvme_ioctl.h). Read-only.
//!
//! Layout and meaning: NVM Express Base Specification 2.0c, 5.16.1.3. Numbers are little-endian.
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use crate::SysError;

/// Size of the log page, bytes.
pub const LOG_BYTES: usize = 512;
/// Bytes per data unit of the counters: one thousand units of 512 bytes.
const UNIT_BYTES: u64 = 512_000;
/// Bit of the critical warnings: reliability degraded by media errors or an internal error.
const DEGRADED: u8 = 1 << 2;

/// Admin command Get Log Page.
const GET_LOG_PAGE: u8 = 0x02;
/// Log page identifier, SMART / Health Information.
const SMART: u32 = 0x02;
/// The whole device, not one namespace.
const ALL_NAMESPACES: u32 = u32::MAX;

/// `struct nvme_passthru_cmd` of linux/nvme_ioctl.h.
#[repr(C)]
#[derive(Debug, Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

/// `NVME_IOCTL_ADMIN_CMD`: `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const ADMIN: u32 = 3 << 30 | (size_of::<AdminCommand>() as u32) << 16 | (b'N' as u32) << 8 | 0x41;

/// Wear of a device, as it reports itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmartLog {
    /// Rated life used, percent: may exceed 100; 255 means 255 or more.
    pub used_percent: u8,
    /// Remaining spare capacity, percent.
    pub spare_percent: u8,
    /// Spare capacity below which the device warns, percent.
    pub spare_threshold_percent: u8,
    /// The device warns that its reliability is degraded.
    pub is_degraded: bool,
    /// Data written by the host, bytes; `None` if not reported.
    pub written_bytes: Option<u64>,
}

impl SmartLog {
    /// Decodes a log page.
    ///
    /// # Errors
    /// Percentages that no device reports, or a page without any figure, as virtual devices send.
    pub fn parse(page: &[u8; LOG_BYTES]) -> Result<Self, SysError> {
        let [warning, _, _, spare_percent, spare_threshold_percent, used_percent, ..] = *page;
        if let Some(percent) = [spare_percent, spare_threshold_percent].into_iter().find(|&value| value > 100)
        {
            return Err(SysError::Invalid {
                what: format!("cannot use the SMART log: a spare capacity of {percent} % is not possible"),
            });
        }
        let units = u128::from_le_bytes(*field(page, 48));
        if (spare_percent, spare_threshold_percent, used_percent, units) == (0, 0, 0, 0) {
            let what = "cannot use the SMART log: the device reports no wear".to_owned();
            return Err(SysError::Invalid { what });
        }
        let units = u64::try_from(units).unwrap_or(u64::MAX);
        Ok(Self {
            used_percent,
            spare_percent,
            spare_threshold_percent,
            is_degraded: warning & DEGRADED != 0,
            written_bytes: Some(units.saturating_mul(UNIT_BYTES)).filter(|&bytes| bytes > 0),
        })
    }

    /// Asks the device at `path`, such as `/dev/nvme0n1` or `/dev/nvme0`.
    ///
    /// # Errors
    /// A file that is no device, cannot be opened (no permission) or is no NVMe device; an error of the
    /// device; those of [`SmartLog::parse`].
    pub fn read(path: &Path) -> Result<Self, SysError> {
        let failed = |source| SysError::File { action: "open", path: path.into(), source };
        let device = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(path)
            .map_err(failed)?;
        let kind = device.metadata().map_err(failed)?.file_type();
        if !kind.is_block_device() && !kind.is_char_device() {
            return Err(SysError::Invalid { what: format!("{} is not a device", path.display()) });
        }
        let mut page = [0; LOG_BYTES];
        let mut command = get_log_page(&mut page);
        // SAFETY: command and page live through the call. The call number encodes the size of the command,
        // and the kernel writes at most `data_bytes` to the page. Other devices refuse the call.
        let answer = unsafe { libc::ioctl(device.as_raw_fd(), ADMIN as libc::Ioctl, &raw mut command) };
        match answer {
            0 => Self::parse(&page),
            1.. => Err(SysError::Invalid {
                what: format!("cannot read the SMART log: the device answers with status {answer:#x}"),
            }),
            _ => {
                let source = std::io::Error::last_os_error();
                Err(SysError::Call { action: "read the SMART log", source })
            }
        }
    }
}

/// Command that reads the SMART log into `page`. It has the kernel's default timeout, because a timeout
/// resets the controller.
fn get_log_page(page: &mut [u8; LOG_BYTES]) -> AdminCommand {
    let words = (LOG_BYTES / 4 - 1) as u32;
    AdminCommand {
        opcode: GET_LOG_PAGE,
        namespace: ALL_NAMESPACES,
        address: page.as_mut_ptr() as u64,
        data_bytes: LOG_BYTES as u32,
        cdw10: words << 16 | SMART,
        ..AdminCommand::default()
    }
}

/// `N` bytes of a page from `at`, which is a constant within it.
fn field<const N: usize>(page: &[u8; LOG_BYTES], at: usize) -> &[u8; N] {
    page.get(at..).and_then(<[u8]>::first_chunk).unwrap_or(&[0; N])
}

#[cfg(test)]
#[path = "nvme_tests.rs"]
mod tests;
