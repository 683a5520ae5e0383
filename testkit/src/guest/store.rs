//! Store of guest components: `guest/` in the build's target directory, filled by `cargo xtask
//! guest prepare`.
use std::path::{Path, PathBuf};

use crate::guest::Drivers;

/// The emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";
/// Hint for missing components.
const HINT: &str = "\nhint: cargo xtask guest prepare";

/// A complete store.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// The store, if complete and the emulator is installed.
    ///
    /// # Errors
    /// The missing component.
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
        // Cargo marks its target directory, or at least stores compiler information there; this
        // program is below it.
        let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
        let marks = ["CACHEDIR.TAG", ".rustc_info.json"];
        let target =
            program.ancestors().find(|directory| marks.iter().any(|mark| directory.join(mark).exists()));
        let target = target.ok_or_else(|| format!("{} lies in no target directory", program.display()))?;
        Ok(Self { path: target.join("guest") })
    }

    /// Directory of the store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Kernel release as in `uname -r`; `None` if the store is incomplete.
    pub fn release(&self) -> Option<String> {
        std::fs::read_to_string(self.complete()).ok().map(|text| text.trim().to_owned())
    }

    /// Whether every module exists; a store filled before a module was added is incomplete.
    pub(crate) fn has_modules(&self) -> bool {
        let all = Drivers::ALL.into_iter().flat_map(Drivers::modules);
        let mut names = all.map(|module| module.split(' ').next().unwrap_or(module));
        names.all(|name| self.module(name).exists())
    }

    /// Path of the unpacked kernel.
    pub(crate) fn kernel(&self) -> PathBuf {
        self.path.join("vmlinux")
    }

    /// Path of a static busybox.
    pub(crate) fn busybox(&self) -> PathBuf {
        self.path.join("busybox")
    }

    /// Path of a kernel module.
    pub(crate) fn module(&self, name: &str) -> PathBuf {
        self.path.join("modules").join(format!("{name}.ko"))
    }

    /// Path of a static program that opens VME windows.
    pub(crate) fn vme_window(&self) -> PathBuf {
        self.path.join("vme_window")
    }

    /// Written last: marks the store as complete.
    pub(crate) fn complete(&self) -> PathBuf {
        self.path.join("release")
    }
}

/// Whether a program is installed.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
