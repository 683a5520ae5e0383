//! Where what guests are made of lies: `guest/` in the build's target directory, filled by
//! `cargo xtask guest prepare`.
use std::path::{Path, PathBuf};

use crate::guest::Drivers;

/// The emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";
/// What helps when something is missing.
const HINT: &str = "\nhint: cargo xtask guest prepare";

/// What guests are made of, complete.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// The store, when it is complete and there is an emulator.
    ///
    /// # Errors
    /// What is missing.
    pub fn open() -> Result<Self, String> {
        if !on_path(QEMU) {
            return Err(format!("no {QEMU}{HINT}"));
        }
        let store = Self::at_its_place()?;
        match store.release() {
            Some(_) if store.vme_window().exists() && store.has_modules() => Ok(store),
            _ => Err(format!("no kernel for guests in {}{HINT}", store.path.display())),
        }
    }

    /// The store, complete or not.
    pub(crate) fn at_its_place() -> Result<Self, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("guests are x86-64 machines, and keepup was compiled for another".into());
        }
        // Cargo marks its target directory so, where it made it itself, and keeps what it knows of the
        // compiler there in any case; this program lies somewhere below it.
        let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
        let marks = ["CACHEDIR.TAG", ".rustc_info.json"];
        let target =
            program.ancestors().find(|directory| marks.iter().any(|mark| directory.join(mark).exists()));
        let target = target.ok_or_else(|| format!("{} lies in no target directory", program.display()))?;
        Ok(Self { path: target.join("guest") })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Release of the kernel, as `uname -r` says it in a guest; `None` when the store is not complete.
    pub fn release(&self) -> Option<String> {
        std::fs::read_to_string(self.complete()).ok().map(|text| text.trim().to_owned())
    }

    /// Whether every module is there; one that was filled before a module was wanted is not complete.
    pub(crate) fn has_modules(&self) -> bool {
        let all = Drivers::ALL.into_iter().flat_map(Drivers::modules);
        let mut names = all.map(|module| module.split(' ').next().unwrap_or(module));
        names.all(|name| self.module(name).exists())
    }

    /// The kernel, unpacked.
    pub(crate) fn kernel(&self) -> PathBuf {
        self.path.join("vmlinux")
    }

    /// A static busybox.
    pub(crate) fn busybox(&self) -> PathBuf {
        self.path.join("busybox")
    }

    /// A kernel module by its name.
    pub(crate) fn module(&self, name: &str) -> PathBuf {
        self.path.join("modules").join(format!("{name}.ko"))
    }

    /// A static program that opens windows on a VME bus.
    pub(crate) fn vme_window(&self) -> PathBuf {
        self.path.join("vme_window")
    }

    /// Written last: the store is complete.
    pub(crate) fn complete(&self) -> PathBuf {
        self.path.join("release")
    }
}

/// Whether there is a program of this name.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
