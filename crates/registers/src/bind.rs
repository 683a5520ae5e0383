//! Temporary binding of a PCI function to another driver.
//!
//! Invariants: a function that a mounted disk, swap or an active interface depends on is refused; dropping
//! the binding restores the previous driver. Only after SIGKILL it cannot.
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use keepup_measure::mounts::parse_mounts;

use super::error::RegisterError;
use super::target::Target;

/// `IFF_UP` of linux/if.h.
const IFF_UP: u64 = 1;

/// Writes a file of the kernel. Tests replace it to simulate the kernel.
type WriteFile = fn(&Path, &str) -> io::Result<()>;

/// A function that is bound to another driver temporarily.
#[derive(Debug)]
pub struct Binding {
    root: PathBuf,
    target: String,
    function: String,
    /// Previous driver.
    previous: Option<String>,
    /// Previous `driver_override`.
    previous_override: Option<String>,
    is_changed: bool,
    write: WriteFile,
}

impl Binding {
    /// Binds a target's function to `driver`; `None` if it is bound to it already. `root` is `/` except in
    /// tests.
    ///
    /// # Errors
    /// A target without a PCI function; a driver that is not loaded or refuses the function; a function in
    /// use; no permission. The previous driver is restored.
    pub fn new(target: &Target, root: &Path, driver: &str) -> Result<Option<Self>, RegisterError> {
        Self::with_writer(target, root, driver, write_existing)
    }

    fn with_writer(
        target: &Target,
        root: &Path,
        driver: &str,
        write: WriteFile,
    ) -> Result<Option<Self>, RegisterError> {
        let wrong =
            |what: String, hint: String| RegisterError::Driver { target: target.to_string(), what, hint };
        let function = target.function().ok_or_else(|| {
            let what = "only a PCI function can be bound to a driver, and this target names none".to_owned();
            wrong(what, "use pci:, vfio: or uio: with a function, such as uio:0000:00:04.0".into())
        })?;
        let directory = super::method::function_directory(target, root, function)?;
        let is_name = !driver.is_empty()
            && driver.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && !driver.starts_with('.');
        if !is_name || !root.join("sys/bus/pci/drivers").join(driver).exists() {
            let what = format!("no PCI driver {driver:?} is loaded");
            let hint = format!("run modprobe {driver}; list the loaded drivers with ls /sys/bus/pci/drivers");
            return Err(wrong(what, hint));
        }
        let previous = link_name(&directory.join("driver"));
        if previous.as_deref() == Some(driver) {
            return Ok(None);
        }
        if let Some(user) = in_use(root, &directory) {
            return Err(RegisterError::Unsafe {
                target: target.to_string(),
                what: format!("its driver {} is in use: {user}", previous.as_deref().unwrap_or("-")),
                hint: "if this is the right device, release it with umount, swapoff or ip link set down"
                    .into(),
            });
        }
        let previous_override = fs::read_to_string(directory.join("driver_override")).unwrap_or_default();
        let previous_override =
            Some(previous_override.trim().to_owned()).filter(|name| !name.is_empty() && name != "(null)");
        let mut binding = Self {
            root: root.into(),
            target: target.to_string(),
            function: function.into(),
            previous,
            previous_override,
            is_changed: true,
            write,
        };
        let bound = binding.bind(driver);
        if bound.is_ok() && link_name(&directory.join("driver")).as_deref() == Some(driver) {
            return Ok(Some(binding));
        }
        let why = bound.err().map_or_else(|| "the driver refused it".to_owned(), |why| why.to_string());
        let back = binding.try_restore().err().map_or_else(String::new, |back| format!("; {back}"));
        let hint = match why.contains("ermission") {
            true => "use sudo",
            false => "read the reason with dmesg; vfio-pci accepts only functions behind an IOMMU",
        };
        Err(wrong(format!("binding the function to {driver} failed: {why}{back}"), hint.into()))
    }

    fn directory(&self) -> PathBuf {
        self.root.join("sys/bus/pci/devices").join(&self.function)
    }

    fn put(&self, path: &Path, text: &str) -> io::Result<()> {
        (self.write)(path, text)
            .map_err(|why| io::Error::new(why.kind(), format!("{}: {why}", path.display())))
    }

    /// Unbinds the function from its driver, if any.
    fn unbind(&self) -> io::Result<()> {
        let driver = self.directory().join("driver");
        match fs::symlink_metadata(&driver).is_ok() {
            true => self.put(&driver.join("unbind"), &self.function),
            false => Ok(()),
        }
    }

    fn bind(&self, driver: &str) -> io::Result<()> {
        self.put(&self.directory().join("driver_override"), driver)?;
        self.unbind()?;
        self.put(&self.root.join("sys/bus/pci/drivers_probe"), &self.function)
    }

    fn try_restore(&mut self) -> Result<(), String> {
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        // An empty line clears the override.
        let previous_override = self.previous_override.as_deref().unwrap_or("\n");
        let overridden = self.put(&self.directory().join("driver_override"), previous_override);
        let done = match (&self.previous, link_name(&self.directory().join("driver"))) {
            (Some(previous), Some(now)) if *previous == now => Ok(()),
            (Some(previous), _) => self.unbind().and_then(|()| {
                let path = self.root.join("sys/bus/pci/drivers").join(previous).join("bind");
                self.put(&path, &self.function)
            }),
            (None, _) => self.unbind(),
        };
        let found = link_name(&self.directory().join("driver"));
        match overridden.and(done) {
            Ok(()) if found == self.previous => Ok(()),
            outcome => Err(format!(
                "restoring {} to {} failed: {}",
                self.function,
                self.previous.as_deref().unwrap_or("no driver"),
                outcome.err().map_or_else(|| "the driver refused it".into(), |why| why.to_string())
            )),
        }
    }

    /// Restores the previous driver, and returns its name. The function must not be open or mapped any more.
    ///
    /// # Errors
    /// The driver could not be restored. The hint is the command to do it.
    pub fn restore(mut self) -> Result<String, RegisterError> {
        let driver = self.previous.clone().unwrap_or_else(|| "no driver".into());
        let function = self.function.clone();
        self.try_restore().map(|()| driver.clone()).map_err(|what| RegisterError::Driver {
            target: self.target.clone(),
            what,
            hint: format!("echo {function} | sudo tee /sys/bus/pci/drivers/{driver}/bind"),
        })
    }

    /// The bound function.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// Name of the previous driver.
    pub fn previous_driver(&self) -> Option<&str> {
        self.previous.as_deref()
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        let _ = self.try_restore();
    }
}

/// Writes to an existing file.
fn write_existing(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// File name of a link's target.
fn link_name(path: &Path) -> Option<String> {
    Some(fs::read_link(path).ok()?.file_name()?.to_string_lossy().into_owned())
}

/// Names of the devices of a class below a directory.
fn devices_below(root: &Path, class: &str, directory: &Path) -> Vec<String> {
    let Ok(directory) = fs::canonicalize(directory) else { return Vec::new() };
    let entries = fs::read_dir(root.join("sys/class").join(class)).into_iter().flatten().flatten();
    let is_below = |path: PathBuf| fs::canonicalize(path).is_ok_and(|path| path.starts_with(&directory));
    let found = entries.filter(|entry| is_below(entry.path()));
    let mut names: Vec<String> = found.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Description of a user that depends on a function's driver, if any.
fn in_use(root: &Path, directory: &Path) -> Option<String> {
    for name in devices_below(root, "net", directory) {
        let flags = fs::read_to_string(root.join("sys/class/net").join(&name).join("flags")).ok()?;
        if u64::from_str_radix(flags.trim().trim_start_matches("0x"), 16).is_ok_and(|all| all & IFF_UP != 0) {
            return Some(format!("the interface {name} is up"));
        }
    }
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    let (mounts, swaps) = (read("proc/self/mountinfo"), read("proc/swaps"));
    // Some file systems identify their disk only by its number, the third field.
    let numbers: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    let mounted = parse_mounts(&mounts);
    let disks = devices_below(root, "block", directory);
    for name in disks.iter().flat_map(|name| [Some(name.clone()), multipath_head(name)]).flatten() {
        let block = root.join("sys/class/block").join(&name);
        let device = format!("/dev/{name}");
        let number = fs::read_to_string(block.join("dev")).unwrap_or_default();
        if let Some(mount) = mounted.iter().find(|mount| mount.source == device) {
            return Some(format!("{device} is mounted at {}", mount.point.display()));
        }
        if !number.is_empty() && numbers.contains(&number.trim()) {
            return Some(format!("{device} is mounted"));
        }
        if swaps.lines().any(|line| line.split_ascii_whitespace().next() == Some(&device)) {
            return Some(format!("{device} is swap"));
        }
        if fs::read_dir(block.join("holders")).is_ok_and(|mut holders| holders.next().is_some()) {
            return Some(format!("{device} is part of another device (RAID, LVM, encryption)"));
        }
    }
    None
}

/// The disk of an NVMe multipath path, which is elsewhere in sysfs: `nvme0n1` for `nvme0c1n1`.
fn multipath_head(path: &str) -> Option<String> {
    let (controller, rest) = path.strip_prefix("nvme")?.split_once('c')?;
    let (number, space) = rest.split_once('n')?;
    number.parse::<u32>().ok()?;
    Some(format!("nvme{controller}n{space}"))
}

#[cfg(test)]
#[path = "bind_tests.rs"]
mod tests;
