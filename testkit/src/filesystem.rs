//! Real file systems on loop devices. Root only.
use std::path::{Path, PathBuf};

use crate::root::{command, output};

/// Size of each device; the image is sparse.
const DEVICE_BYTES: u64 = 512 << 20;

/// File system type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystemKind {
    /// ext4 on one device.
    Ext4,
    /// XFS on one device.
    Xfs,
    /// btrfs on one device.
    Btrfs,
    /// btrfs, data striped over two devices.
    BtrfsRaid0,
    /// btrfs, data striped and mirrored on four devices.
    BtrfsRaid10,
}

impl FileSystemKind {
    /// All types.
    pub const ALL: [Self; 5] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::BtrfsRaid0, Self::BtrfsRaid10];

    /// Name in the mount table.
    pub fn fs_type(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs | Self::BtrfsRaid0 | Self::BtrfsRaid10 => "btrfs",
        }
    }

    /// Number of devices.
    pub fn devices(self) -> usize {
        match self {
            Self::Ext4 | Self::Xfs | Self::Btrfs => 1,
            Self::BtrfsRaid0 => 2,
            Self::BtrfsRaid10 => 4,
        }
    }

    /// Data profile of btrfs; `None` for others.
    pub fn profile(self) -> Option<&'static str> {
        match self {
            Self::Ext4 | Self::Xfs => None,
            Self::Btrfs => Some("single"),
            Self::BtrfsRaid0 => Some("raid0"),
            Self::BtrfsRaid10 => Some("raid10"),
        }
    }

    fn make(self, devices: &[String]) -> Result<(), String> {
        let program = format!("mkfs.{}", self.fs_type());
        let mut arguments = match self {
            Self::Ext4 => vec!["-q", "-F"],
            Self::Xfs | Self::Btrfs => vec!["-q", "-f"],
            Self::BtrfsRaid0 => vec!["-q", "-f", "-d", "raid0", "-m", "raid0"],
            Self::BtrfsRaid10 => vec!["-q", "-f", "-d", "raid10", "-m", "raid10"],
        };
        arguments.extend(devices.iter().map(String::as_str));
        command(&program, &arguments)
    }
}

/// A mounted file system; unmounted, and its devices removed, when dropped.
#[derive(Debug)]
pub struct LoopFileSystem {
    path: PathBuf,
    is_mounted: bool,
    devices: Vec<String>,
    images: Vec<PathBuf>,
}

impl LoopFileSystem {
    /// Creates a file system and mounts it on a new directory `path`; its images are stored beside
    /// that.
    ///
    /// # Errors
    /// System error: no loop devices, or no mkfs program.
    pub fn mount(kind: FileSystemKind, path: &Path) -> Result<Self, String> {
        Self::mount_sized(kind, path, DEVICE_BYTES)
    }

    /// The same with devices of this size in bytes.
    ///
    /// # Errors
    /// System error.
    pub fn mount_sized(kind: FileSystemKind, path: &Path, device_bytes: u64) -> Result<Self, String> {
        std::fs::create_dir_all(path).map_err(|e| e.to_string())?;
        let mut made = Self { path: path.into(), is_mounted: false, devices: Vec::new(), images: Vec::new() };
        for n in 0..kind.devices() {
            let image = path.with_extension(format!("image{n}"));
            let file = std::fs::File::create(&image).map_err(|e| e.to_string())?;
            made.images.push(image.clone());
            file.set_len(device_bytes).map_err(|e| e.to_string())?;
            let text = image.to_string_lossy().into_owned();
            made.devices.push(output("losetup", &["--find", "--show", "--direct-io=on", &text])?);
        }
        kind.make(&made.devices)?;
        let devices: Vec<String> = made.devices.iter().map(|device| format!("device={device}")).collect();
        let mut arguments = vec!["-t".to_owned(), kind.fs_type().to_owned()];
        if made.devices.len() > 1 {
            arguments.extend(["-o".to_owned(), devices.join(",")]);
        }
        arguments.extend([made.devices[0].clone(), path.to_string_lossy().into_owned()]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        command("mount", &arguments)?;
        made.is_mounted = true;
        Ok(made)
    }

    /// Mount point.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopFileSystem {
    fn drop(&mut self) {
        if self.is_mounted {
            drop(command("umount", &[&self.path.to_string_lossy()]));
        }
        for device in &self.devices {
            drop(command("losetup", &["--detach", device]));
        }
        for image in &self.images {
            let _ = std::fs::remove_file(image);
        }
    }
}
