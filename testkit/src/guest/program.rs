//! The built keepup with its shared libraries, for a guest's initial file system.
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::root::output;

/// A file of a guest: path and content.
pub(crate) type Brought = (String, Vec<u8>);

/// keepup as `/bin/keepup`, stripped, and its libraries at their paths; read once per process.
pub(crate) fn keepup() -> Result<&'static [Brought], String> {
    static FOUND: OnceLock<Result<Vec<Brought>, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| brought(&beside()?));
    found.as_deref().map_err(Clone::clone)
}

/// The keepup of this build: beside this program, or beside its directory.
fn beside() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let near = program.ancestors().skip(1).take(2).map(|directory| directory.join("keepup"));
    let found = near.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| {
        format!("no keepup beside {}\nhint: cargo build --package keepup-cli", program.display())
    })
}

fn brought(program: &Path) -> Result<Vec<Brought>, String> {
    let directory = tempfile::tempdir().map_err(|e| format!("cannot make files for a guest: {e}"))?;
    let stripped = directory.path().join("keepup");
    let [from, to] = [program, &stripped].map(|path| path.display().to_string());
    let done = Command::new("strip").args(["--strip-all", "-o", &to, &from]).output();
    let done = done.map_err(|e| format!("cannot run strip: {e}\nhint: apt-get install binutils"))?;
    if !done.status.success() {
        return Err(format!("cannot strip {from}: {}", String::from_utf8_lossy(&done.stderr).trim()));
    }
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()));
    let mut all = vec![("bin/keepup".to_owned(), read(&stripped)?)];
    for library in libraries(&output("ldd", &[&from])?) {
        all.push((library.trim_start_matches('/').to_owned(), read(Path::new(library))?));
    }
    Ok(all)
}

/// Paths of libraries listed by ldd(1): `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`, and
/// the loader without an arrow; the vDSO has no path.
fn libraries(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| {
        let path = line.split_once("=> ").map_or(line, |(_, path)| path).trim();
        path.starts_with('/').then(|| path.split(' ').next()).flatten()
    })
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
