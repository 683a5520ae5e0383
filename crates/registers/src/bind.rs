//! Binds a PCI function to another driver for as long as its registers are read, and puts it back.
//!
//! Invariants: a function that a mounted disk, swap or an interface that is up depends on is left alone; what
//! was changed is put back when the binding goes, whatever happened meanwhile, but for a kill that no program
//! sees.
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use keepup_measure::mounts::parse_mounts;

use super::error::RegisterError;
use super::target::Target;

/// `IFF_UP` of linux/if.h.
const IFF_UP: u64 = 1;

/// How files of the kernel are written; tests play the kernel here.
type WriteFile = fn(&Path, &str) -> io::Result<()>;

/// A function that is bound to another driver than before.
#[derive(Debug)]
pub struct Binding {
    root: PathBuf,
    target: String,
    function: String,
    /// The driver it had.
    before: Option<String>,
    /// The driver that it was kept for, if for any (`driver_override`).
    kept_for: Option<String>,
    is_changed: bool,
    write: WriteFile,
}

impl Binding {
    /// Binds a target's function to `driver`; `None` when it was bound to it anyway. `root` is `/` in
    /// earnest.
    ///
    /// # Errors
    /// A target that is no PCI function; a driver that is not loaded or does not take it; a function in use;
    /// no permission. All is as it was then.
    pub fn take(target: &Target, root: &Path, driver: &str) -> Result<Option<Self>, RegisterError> {
        Self::by(target, root, driver, written)
    }

    fn by(
        target: &Target,
        root: &Path,
        driver: &str,
        write: WriteFile,
    ) -> Result<Option<Self>, RegisterError> {
        let wrong =
            |what: String, hint: String| RegisterError::Driver { target: target.to_string(), what, hint };
        let function = target.function().ok_or_else(|| {
            let what = "a driver can be bound to a PCI function, and this names none".to_owned();
            wrong(what, "pci:, vfio: or uio: with a function, as in uio:0000:00:04.0".into())
        })?;
        let directory = super::method::directory(target, root, function)?;
        let is_name = !driver.is_empty()
            && driver.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && !driver.starts_with('.');
        if !is_name || !root.join("sys/bus/pci/drivers").join(driver).exists() {
            let what = format!("there is no driver {driver:?} of PCI functions");
            return Err(wrong(
                what,
                format!("modprobe {driver}; ls /sys/bus/pci/drivers lists those loaded"),
            ));
        }
        let before = linked(&directory.join("driver"));
        if before.as_deref() == Some(driver) {
            return Ok(None);
        }
        if let Some(user) = in_use(root, &directory) {
            return Err(RegisterError::Unsafe {
                target: target.to_string(),
                what: format!("its driver {} is in use: {user}", before.as_deref().unwrap_or("-")),
                hint: "umount, swapoff or ip link set down first, if this is the device that you mean".into(),
            });
        }
        let kept_for = fs::read_to_string(directory.join("driver_override")).unwrap_or_default();
        let kept_for = Some(kept_for.trim().to_owned()).filter(|name| !name.is_empty() && name != "(null)");
        let mut binding = Self {
            root: root.into(),
            target: target.to_string(),
            function: function.into(),
            before,
            kept_for,
            is_changed: true,
            write,
        };
        let bound = binding.bind(driver);
        if bound.is_ok() && linked(&directory.join("driver")).as_deref() == Some(driver) {
            return Ok(Some(binding));
        }
        let why = bound.err().map_or_else(|| "it did not take it".to_owned(), |why| why.to_string());
        let back = binding.restore().err().map_or_else(String::new, |back| format!("; {back}"));
        let hint = match why.contains("ermission") {
            true => "only root may: sudo",
            false => "dmesg says more; vfio-pci takes only a function behind an IOMMU",
        };
        Err(wrong(format!("cannot bind the function to {driver}: {why}{back}"), hint.into()))
    }

    fn directory(&self) -> PathBuf {
        self.root.join("sys/bus/pci/devices").join(&self.function)
    }

    fn put(&self, path: &Path, text: &str) -> io::Result<()> {
        (self.write)(path, text)
            .map_err(|why| io::Error::new(why.kind(), format!("{}: {why}", path.display())))
    }

    /// Takes the function from its driver.
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

    fn restore(&mut self) -> Result<(), String> {
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        // An empty line takes the override away.
        let kept_for = self.kept_for.as_deref().unwrap_or("\n");
        let overridden = self.put(&self.directory().join("driver_override"), kept_for);
        let done = match (&self.before, linked(&self.directory().join("driver"))) {
            (Some(before), Some(now)) if *before == now => Ok(()),
            (Some(before), _) => self.unbind().and_then(|()| {
                let path = self.root.join("sys/bus/pci/drivers").join(before).join("bind");
                self.put(&path, &self.function)
            }),
            (None, _) => self.unbind(),
        };
        let found = linked(&self.directory().join("driver"));
        match overridden.and(done) {
            Ok(()) if found == self.before => Ok(()),
            outcome => Err(format!(
                "could not put {} back to {}: {}",
                self.function,
                self.before.as_deref().unwrap_or("no driver"),
                outcome.err().map_or_else(|| "its driver did not take it".into(), |why| why.to_string())
            )),
        }
    }

    /// Puts the function back; nothing of it may be open or mapped any more. Gives what it is bound to again.
    ///
    /// # Errors
    /// What could not be put back, and how to do it by hand.
    pub fn put_back(mut self) -> Result<String, RegisterError> {
        let driver = self.before.clone().unwrap_or_else(|| "no driver".into());
        let function = self.function.clone();
        self.restore().map(|()| driver.clone()).map_err(|what| RegisterError::Driver {
            target: self.target.clone(),
            what,
            hint: format!("echo {function} | sudo tee /sys/bus/pci/drivers/{driver}/bind"),
        })
    }

    /// The function.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// The driver that it had.
    pub fn before(&self) -> Option<&str> {
        self.before.as_deref()
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        let _ = self.restore();
    }
}

/// Writes to a file of the kernel, which must be there.
fn written(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// The last part of where a link leads.
fn linked(path: &Path) -> Option<String> {
    Some(fs::read_link(path).ok()?.file_name()?.to_string_lossy().into_owned())
}

/// Names of a class whose devices lie below a directory.
fn below(root: &Path, class: &str, directory: &Path) -> Vec<String> {
    let Ok(directory) = fs::canonicalize(directory) else { return Vec::new() };
    let entries = fs::read_dir(root.join("sys/class").join(class)).into_iter().flatten().flatten();
    let is_below = |path: PathBuf| fs::canonicalize(path).is_ok_and(|path| path.starts_with(&directory));
    let found = entries.filter(|entry| is_below(entry.path()));
    let mut names: Vec<String> = found.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// What depends on a function's driver, in words.
fn in_use(root: &Path, directory: &Path) -> Option<String> {
    for name in below(root, "net", directory) {
        let flags = fs::read_to_string(root.join("sys/class/net").join(&name).join("flags")).ok()?;
        if u64::from_str_radix(flags.trim().trim_start_matches("0x"), 16).is_ok_and(|all| all & IFF_UP != 0) {
            return Some(format!("the interface {name} is up"));
        }
    }
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    let (mounts, swaps) = (read("proc/self/mountinfo"), read("proc/swaps"));
    // A file system may name its disk by number alone: the third field.
    let numbers: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    let mounted = parse_mounts(&mounts);
    for name in
        below(root, "block", directory).iter().flat_map(|name| [Some(name.clone()), head(name)]).flatten()
    {
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

/// The disk that a path of NVMe multipath belongs to, which lies elsewhere in sysfs: `nvme0n1` of
/// `nvme0c1n1`.
fn head(path: &str) -> Option<String> {
    let (controller, rest) = path.strip_prefix("nvme")?.split_once('c')?;
    let (number, space) = rest.split_once('n')?;
    number.parse::<u32>().ok()?;
    Some(format!("nvme{controller}n{space}"))
}

#[cfg(test)]
#[path = "bind_tests.rs"]
mod tests;
