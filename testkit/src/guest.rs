//! Virtual machine with emulated test devices that runs the real keepup: QEMU without hardware
//! virtualization (TCG), Debian's kernel, and an initial file system of busybox, keepup and a
//! script.
//!
//! Timings in it are those of an emulator: they verify function and order, never the speed of
//! hardware. Invariants: a guest leaves no process behind; a hanging guest is killed at its time
//! limit, by its process id.
mod archive;
mod output;
mod prepare;
mod program;
mod store;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use keepup_sys::process::Process;
use tempfile::{NamedTempFile, TempDir};

use crate::root::skip;
use archive::Archive;

pub use output::{GuestOutput, Part};
pub use prepare::prepare;
pub use store::Store;

/// Guest memory; below the limit of a device with 28 address lines (edu).
const MEMORY: &str = "240M";
/// Memory shared by host and guest, bytes: BAR 2 of [`Device::Shared`].
const SHARED_BYTES: u64 = 4 << 20;
/// Default time limit: a boot takes 4 to 8 s, more on a busy host.
const LIMIT: Duration = Duration::from_secs(300);
/// First process of a guest.
const INIT: &str = include_str!("guest/init.sh");

/// Machine type of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// A PC with a PCI bus.
    Pc,
    /// A PC with PCI Express and an IOMMU, required by vfio.
    Q35,
}

/// An emulated test device, each at its own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// QEMU's `edu`: registers in BAR 0 (1 MiB), identity 0x010000ED in the first, and DMA of at
    /// most 4092 bytes: QEMU 7.2 aborts at a transfer that ends at the end of the device memory.
    Edu,
    /// `pci-testdev`: memory in BAR 0, ports in BAR 1.
    TestDevice,
    /// `ivshmem-plain`: BAR 2 is memory shared with the host, see [`GuestOutput::shared`].
    Shared,
}

impl Device {
    /// All devices.
    pub const ALL: [Self; 3] = [Self::Edu, Self::TestDevice, Self::Shared];

    /// Its PCI address.
    pub fn address(self) -> &'static str {
        match self {
            Self::Edu => "0000:00:04.0",
            Self::TestDevice => "0000:00:05.0",
            Self::Shared => "0000:00:06.0",
        }
    }

    fn option(self) -> &'static str {
        match self {
            Self::Edu => "edu,addr=4",
            Self::TestDevice => "pci-testdev,addr=5",
            Self::Shared => "ivshmem-plain,memdev=shared,addr=6",
        }
    }
}

/// Drivers loaded before the script starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drivers {
    /// `uio_pci_generic`, and `hilscher` (`uio_cif`), which maps BARs 0 and 2 of any bound function
    /// as maps 0 and 1.
    Uio,
    /// `vfio-pci`; needs the IOMMU of [`Machine::Q35`].
    Vfio,
    /// `vme_user` on the kernel's simulated VME bridge: `/dev/bus/vme/{m0-3,s0-3,ctl}`.
    Vme,
}

impl Drivers {
    /// All drivers.
    pub const ALL: [Self; 3] = [Self::Uio, Self::Vfio, Self::Vme];

    /// Kernel modules in load order, with parameters.
    pub(crate) fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Uio => &["uio", "uio_pci_generic", "uio_cif"],
            Self::Vfio => {
                &["irqbypass", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci"]
            }
            Self::Vme => &["vme", "vme_fake", "vme_user bus=0"],
        }
    }
}

/// Configuration of a guest.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    store: &'a Store,
    machine: Machine,
    devices: Vec<Device>,
    drivers: Vec<Drivers>,
    files: Vec<(String, PathBuf)>,
    counts_instructions: bool,
    limit: Duration,
}

/// Temporary files of a run.
#[derive(Debug)]
struct Scratch {
    directory: TempDir,
    shared: Option<NamedTempFile>,
}

/// Checks the prerequisites of guests; reports a skipped test.
///
/// # Panics
/// As [`skip`].
pub fn available(test: &str) -> Option<Store> {
    Store::open().map_err(|why| skip(test, &why)).ok()
}

impl<'a> Guest<'a> {
    /// A guest without devices, with a time limit of 90 s.
    pub fn new(store: &'a Store, machine: Machine) -> Self {
        Self {
            store,
            machine,
            devices: Vec::new(),
            drivers: Vec::new(),
            files: Vec::new(),
            counts_instructions: false,
            limit: LIMIT,
        }
    }

    /// Adds devices.
    #[must_use]
    pub fn devices(mut self, devices: &[Device]) -> Self {
        self.devices.extend(devices);
        self
    }

    /// Adds drivers, loaded in this order.
    #[must_use]
    pub fn drivers(mut self, drivers: &[Drivers]) -> Self {
        self.drivers.extend(drivers);
        self
    }

    /// Adds a file; `name` is its path in the guest, in an existing directory, as in `bin/tool`.
    /// Programs must be static.
    #[must_use]
    pub fn file(mut self, name: &str, content: &Path) -> Self {
        self.files.push((name.trim_start_matches('/').to_owned(), content.to_owned()));
        self
    }

    /// Uses a deterministic clock of 8 ns per executed instruction instead of the host's clock.
    #[must_use]
    pub fn counting_instructions(mut self) -> Self {
        self.counts_instructions = true;
        self
    }

    /// Sets the time limit of the whole run.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Boots, runs `script` in busybox's shell, and powers off. The script has keepup in its path,
    /// `vme_window` with [`Drivers::Vme`], and the functions of `init.sh`: `part NAME COMMAND...`,
    /// `bar ADDRESS N`, `bind ADDRESS DRIVER`.
    ///
    /// # Errors
    /// There is no keepup, or the guest does not finish; the error includes its output. A failing
    /// script is not an error, see [`GuestOutput::status`].
    pub fn run(&self, script: &str) -> Result<GuestOutput, String> {
        let scratch = self.scratch().map_err(|e| format!("cannot make files for a guest: {e}"))?;
        let first = self.first_file_system(script)?;
        let within = |name: &str| scratch.directory.path().join(name);
        std::fs::write(within("initrd"), first).map_err(|e| format!("cannot write an initrd: {e}"))?;
        let words = File::create(within("qemu")).map_err(|e| format!("cannot write qemu's words: {e}"))?;
        let mut command = Command::new(store::QEMU);
        command.args(self.arguments(&scratch)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(words);
        let mut qemu = Process::start(command).map_err(|e| format!("cannot start {}: {e}", store::QEMU))?;
        let ended = wait(&mut qemu, self.limit)?;
        // Kills a guest that still runs.
        drop(qemu);
        let text = |name: &str| {
            let bytes = std::fs::read(within(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\r', "")
        };
        let (console, results) = (text("console"), text("results"));
        if let Some(true) = ended
            && let Some((status, stdout, parts)) = output::parse(&results)
        {
            let shared = scratch.shared.as_ref().map(|file| std::fs::read(file.path())).transpose();
            let shared = shared.map_err(|e| format!("cannot read the shared memory: {e}"))?;
            return Ok(GuestOutput { status, stdout, parts, console, shared: shared.unwrap_or_default() });
        }
        let why = match ended {
            Some(true) => "the guest went down before its script ended".to_owned(),
            Some(false) => format!("{} failed", store::QEMU),
            None => format!("the guest was ended at its limit of {} s", self.limit.as_secs()),
        };
        let printed = results.replace('\u{1}', "");
        let words = text("qemu");
        Err(format!("{why}; it had printed:\n{printed}\nand on its console:\n{console}\n{words}"))
    }

    fn scratch(&self) -> std::io::Result<Scratch> {
        let shared = match self.devices.contains(&Device::Shared) {
            true => {
                let file = tempfile::Builder::new().prefix("keepup-guest-").tempfile_in("/dev/shm")?;
                file.as_file().set_len(SHARED_BYTES)?;
                Some(file)
            }
            false => None,
        };
        Ok(Scratch { directory: tempfile::tempdir_in(self.store.path())?, shared })
    }

    fn first_file_system(&self, script: &str) -> Result<Vec<u8>, String> {
        let read =
            |path: &Path| std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()));
        let mut archive = Archive::default();
        for name in ["bin", "dev", "lib", "lib/x86_64-linux-gnu", "lib64", "proc", "sys", "tmp"] {
            archive.directory(name);
        }
        // Before /dev is mounted the script needs a console.
        archive.device("dev/console", 5, 1);
        archive.file("bin/busybox", &read(&self.store.busybox())?);
        archive.link("bin/sh", "busybox");
        for (name, content) in program::keepup()? {
            archive.file(name, content);
        }
        let mut modules = String::new();
        for module in self.drivers.iter().flat_map(|drivers| drivers.modules()) {
            let (name, parameters) = module.split_once(' ').unwrap_or((module, ""));
            archive.file(&format!("lib/{name}.ko"), &read(&self.store.module(name))?);
            modules.push_str(&format!("/lib/{name}.ko {parameters}\n"));
        }
        archive.file("modules", modules.as_bytes());
        if self.drivers.contains(&Drivers::Vme) {
            archive.file("bin/vme_window", &read(&self.store.vme_window())?);
        }
        for (name, content) in &self.files {
            archive.file(name, &read(content)?);
        }
        archive.file("script", script.as_bytes());
        archive.file("init", INIT.as_bytes());
        Ok(archive::compressed(&archive.finish()))
    }

    fn arguments(&self, scratch: &Scratch) -> Vec<String> {
        let within = |name: &str| scratch.directory.path().join(name).display().to_string();
        let mut arguments: Vec<String> = Vec::new();
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        let (machine, iommu) = match self.machine {
            Machine::Pc => ("pc", ""),
            Machine::Q35 => ("q35", " intel_iommu=on"),
        };
        add(&["-accel", "tcg,thread=single", "-machine", machine, "-m", MEMORY]);
        add(&["-nodefaults", "-display", "none", "-no-reboot"]);
        // Same random seed, addresses and time at each boot.
        add(&["-seed", "1", "-rtc", "base=2020-01-01T00:00:00,clock=vm"]);
        add(&["-kernel", &self.store.kernel().display().to_string(), "-initrd", &within("initrd")]);
        // ramfs: tmpfs takes half of the memory at most, less than an unoptimised keepup needs. The kernel's
        // check of the timer fails, and it panics, if the host does not run the emulator meanwhile.
        let kernel = "console=ttyS0 panic=-1 quiet nokaslr norandmaps no_timer_check rootfstype=ramfs";
        add(&["-append", &format!("{kernel}{iommu}")]);
        for port in ["console", "results"] {
            add(&["-chardev", &format!("file,id={port},path={}", within(port))]);
            add(&["-serial", &format!("chardev:{port}")]);
        }
        if self.machine == Machine::Q35 {
            add(&["-device", "intel-iommu"]);
        }
        if let Some(shared) = &scratch.shared {
            let path = shared.path().display();
            let memory =
                format!("memory-backend-file,id=shared,share=on,mem-path={path},size={SHARED_BYTES}");
            add(&["-object", &memory]);
        }
        for device in &self.devices {
            add(&["-device", device.option()]);
        }
        if self.counts_instructions {
            add(&["-icount", "shift=3,sleep=off"]);
        }
        arguments
    }
}

/// Whether a process succeeded; `None` if it still runs at the limit.
fn wait(process: &mut Process, limit: Duration) -> Result<Option<bool>, String> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // A signal interrupts the wait.
        match process.wait(left).map_err(|e| e.to_string())? {
            Some(ended) => return Ok(Some(ended.status.success())),
            None if left.is_zero() => return Ok(None),
            None => {}
        }
    }
}

#[cfg(test)]
#[path = "guest_tests.rs"]
mod tests;
