//! Fills the store: the kernel of Debian 12, some of its modules, busybox, and three modules that
//! Debian does not build, compiled from the same kernel's source.
//!
//! Packages are downloaded and unpacked into the store, not installed. Only host tools (emulator,
//! compiler) are installed, and only by root. Invariant: the file that marks the store as complete
//! is written last.
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::guest::store::{QEMU, on_path};
use crate::guest::{Drivers, Store};
use crate::root::{command, output};

/// Required host tools and their packages.
const TOOLS: [(&str, &str); 6] = [
    (QEMU, "qemu-system-x86"),
    ("dpkg-deb", "dpkg"),
    ("gcc-12", "gcc-12"),
    ("strip", "binutils"),
    ("make", "make"),
    ("xz", "xz-utils"),
];
/// Libraries for the kernel's object checker and for static programs.
const LIBRARIES: [(&str, &str); 2] =
    [("/usr/lib/x86_64-linux-gnu/libelf.so.1", "libelf1"), ("/usr/lib/x86_64-linux-gnu/libc.a", "libc6-dev")];
/// Metapackage of the newest kernel.
const NEWEST: &str = "linux-image-amd64";
/// Compression of Debian's kernels.
const XZ_MAGIC: &[u8] = b"\xfd7zXZ\0";
/// Path of the VME driver in the kernel source.
const VME: &str = "drivers/staging/vme_user";
/// A program that opens its windows.
const VME_WINDOW: &str = include_str!("vme_window.c");
const VME_SOURCES: [&str; 7] =
    ["vme.c", "vme.h", "vme_bridge.h", "vme_fake.c", "vme_user.c", "vme_user.h", "Makefile"];

/// An available Debian kernel.
#[derive(Debug, PartialEq, Eq)]
struct Kernel {
    /// Release as in `uname -r`: `6.1.0-56-amd64`.
    release: String,
    /// Package version.
    version: String,
}

/// Completes the store if necessary; `tell` receives progress messages.
///
/// # Errors
/// Error with a hint.
pub fn prepare(tell: &mut dyn FnMut(&str)) -> Result<Store, String> {
    let store = Store::at_its_place()?;
    tools(tell)?;
    if store.release().is_none() || !store.has_modules() {
        let kernel = newest()?;
        tell(&format!("kernel {}: downloading it and its source, 220 MB", kernel.release));
        fill(&store, &kernel, tell)?;
    }
    vme_window(&store)?;
    Ok(store)
}

/// Installs missing host tools, as root.
fn tools(tell: &mut dyn FnMut(&str)) -> Result<(), String> {
    let missing = missing_packages();
    if missing.is_empty() {
        return Ok(());
    }
    let hint = format!("hint: apt-get install --no-install-recommends {}", missing.join(" "));
    if !rustix::process::geteuid().is_root() || !on_path("apt-get") {
        return Err(format!("guests need {}, which only root can install\n{hint}", missing.join(", ")));
    }
    tell(&format!("installing {}", missing.join(", ")));
    apt(&["update"])?;
    apt(&[&["install", "--no-install-recommends"][..], &missing].concat())?;
    match missing_packages()[..] {
        [] => Ok(()),
        [ref missing, ..] => Err(format!("{missing} is installed, and what guests need of it is not there")),
    }
}

fn missing_packages() -> Vec<&'static str> {
    let missing = TOOLS.into_iter().filter(|(program, _)| !on_path(program)).map(|(_, package)| package);
    let libraries = LIBRARIES.into_iter().filter(|(file, _)| !Path::new(file).exists());
    missing.chain(libraries.map(|(_, package)| package)).collect()
}

fn apt(arguments: &[&str]) -> Result<(), String> {
    let quiet = ["DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-y"];
    command("env", &[&quiet[..], arguments].concat())
}

/// Newest kernel of which apt has everything. A security update reaches the archive in parts: for hours it
/// has the new tools and not yet the signed kernel. The kernel of the last point release is always complete.
fn newest() -> Result<Kernel, String> {
    if rustix::process::geteuid().is_root() {
        // Old lists name removed packages. Without a network the download fails with a message.
        drop(apt(&["update"]));
    }
    let known = output("apt-cache", &["show", NEWEST]);
    let known =
        known.map_err(|why| format!("apt knows no kernel: {why}\nhint: apt-get update, on Debian 12"))?;
    let kernels = kernels(&known);
    if kernels.is_empty() {
        return Err(format!("{NEWEST} names no kernel:\n{known}\nhint: this needs Debian 12"));
    }
    let complete = kernels.into_iter().find(|kernel| {
        // `apt-cache show` succeeds for an unknown version, and prints nothing.
        kernel.packages().iter().all(|name| {
            let package = format!("{name}={}", kernel.version);
            output("apt-cache", &["show", &package]).is_ok_and(|shown| !shown.trim().is_empty())
        })
    });
    complete.ok_or_else(|| {
        "apt has no kernel together with its headers and its source\nhint: apt-get update".to_owned()
    })
}

/// Parses the kernels, the newest first, from the descriptions of [`NEWEST`]: `Depends:
/// linux-image-6.1.0-56-amd64 (= 6.1.192-2)`.
fn kernels(descriptions: &str) -> Vec<Kernel> {
    let depends = descriptions.lines().filter_map(|line| line.strip_prefix("Depends: "));
    let parsed = depends.filter_map(|depends| {
        let (release, version) = depends.strip_prefix("linux-image-")?.split_once(" (= ")?;
        Some(Kernel { release: release.to_owned(), version: version.split_once(')')?.0.to_owned() })
    });
    parsed.collect()
}

impl Kernel {
    /// Version of its source: `6.1`.
    fn series(&self) -> &str {
        let dots = self.release.match_indices('.').nth(1);
        dots.map_or(&self.release, |(at, _)| &self.release[..at])
    }

    /// Name of the headers common to all flavours.
    fn common_headers(&self) -> String {
        let flavour = self.release.rfind('-').unwrap_or(self.release.len());
        format!("linux-headers-{}-common", &self.release[..flavour])
    }

    /// Its packages: image, headers, common headers, tools to build modules, source.
    fn packages(&self) -> [String; 5] {
        let [image, headers] = ["image", "headers"].map(|kind| format!("linux-{kind}-{}", self.release));
        let [kbuild, source] = ["kbuild", "source"].map(|kind| format!("linux-{kind}-{}", self.series()));
        [image, headers, self.common_headers(), kbuild, source]
    }
}

fn fill(store: &Store, kernel: &Kernel, tell: &mut dyn FnMut(&str)) -> Result<(), String> {
    let work = store.path().join("work");
    // Left by an interrupted run.
    drop(fs::remove_dir_all(&work));
    let modules = store.path().join("modules");
    for directory in [&work, &modules] {
        fs::create_dir_all(directory).map_err(|e| format!("cannot make {}: {e}", directory.display()))?;
    }
    let Kernel { release, version } = kernel;
    let series = kernel.series();
    let packages = kernel.packages();
    for name in &packages {
        download(&work, &format!("{name}={version}"))?;
    }
    let [image, headers, common, kbuild, _] = packages;
    download(&work, "busybox-static")?;
    tell("unpacking");
    let members = [format!("./boot/vmlinuz-{release}"), format!("./lib/modules/{release}/kernel")];
    unpack(&work, &image, &members)?;
    unpack(&work, "busybox-static", &["./bin/busybox".to_owned()])?;
    for name in [&headers, &common, &kbuild] {
        unpack(&work, name, &[])?;
    }
    copy(&work.join("bin/busybox"), &store.busybox())?;
    uncompress(&work.join(format!("boot/vmlinuz-{release}")), &store.kernel())?;
    let built = work.join(format!("lib/modules/{release}/kernel"));
    for module in Drivers::Uio.modules().iter().chain(Drivers::Vfio.modules()) {
        let found = find(&built, &format!("{module}.ko"));
        let found = found.ok_or_else(|| {
            format!("kernel {release} has no module {module}\nhint: this needs the kernel of Debian 12")
        })?;
        copy(&found, &store.module(module))?;
    }
    tell("compiling the VME modules");
    let compiled = vme(&work, series, &headers, &common)?;
    for module in ["vme", "vme_fake", "vme_user"] {
        copy(&compiled.join(format!("{module}.ko")), &store.module(module))?;
    }
    fs::write(store.complete(), format!("{release}\n"))
        .map_err(|e| format!("cannot complete the store: {e}"))?;
    fs::remove_dir_all(&work).map_err(|e| format!("cannot remove {}: {e}", work.display()))
}

/// Downloads a package into a directory.
fn download(work: &Path, package: &str) -> Result<(), String> {
    let status = Command::new("apt-get").args(["-qq", "download", package]).current_dir(work).output();
    let output = status.map_err(|e| format!("cannot run apt-get: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "cannot download {package}: {}\nhint: apt-get update",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Downloaded package with this name.
fn package(work: &Path, name: &str) -> Result<PathBuf, String> {
    let entries = fs::read_dir(work).map_err(|e| format!("cannot list {}: {e}", work.display()))?;
    let begins = format!("{name}_");
    let mut paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let found = paths.find(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&begins)));
    found.ok_or_else(|| format!("{name} is not in {}", work.display()))
}

/// Unpacks members of a package, or all of them, in its directory.
fn unpack(work: &Path, name: &str, members: &[String]) -> Result<(), String> {
    let package = package(work, name)?;
    let failed = |e: std::io::Error| format!("cannot unpack {}: {e}", package.display());
    let mut reader = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&package)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let files = reader.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let unpacked = Command::new("tar").arg("-x").args(members).current_dir(work).stdin(files).status();
    let read = reader.wait().map_err(failed)?;
    match unpacked.map_err(failed)?.success() && read.success() {
        true => Ok(()),
        false => Err(format!("cannot unpack {members:?} of {}", package.display())),
    }
}

/// Extracts the kernel from its self-extracting image, which would take seconds in an emulator.
fn uncompress(image: &Path, kernel: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("cannot unpack {}: {e}", image.display());
    let bytes = fs::read(image).map_err(failed)?;
    let start = bytes.windows(XZ_MAGIC.len()).position(|window| window == XZ_MAGIC);
    let start = start.ok_or_else(|| format!("{} is not compressed with xz", image.display()))?;
    let mut compressed = File::open(image).map_err(failed)?;
    compressed.seek(SeekFrom::Start(start as u64)).map_err(failed)?;
    // The compressed data is followed by its length, ignored only by `--single-stream`.
    let status = Command::new("xz")
        .args(["-dc", "--single-stream"])
        .stdin(compressed)
        .stdout(File::create(kernel).map_err(failed)?)
        .status()
        .map_err(failed)?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("xz cannot unpack {}", image.display())),
    }
}

/// Compiles the VME bus, its simulated bridge and its driver as modules; returns their directory.
fn vme(work: &Path, series: &str, headers: &str, common: &str) -> Result<PathBuf, String> {
    unpack_vme(work, series)?;
    let sources = work.join(format!("linux-source-{series}")).join(VME);
    let failed = |e: std::io::Error| format!("cannot prepare {}: {e}", sources.display());
    let bus = sources.join("vme.c");
    let text = fs::read_to_string(&bus).map_err(failed)?;
    // Upstream only builds it in, so it lacks a MODULE_LICENSE; its header states the license.
    fs::write(&bus, format!("{text}\nMODULE_LICENSE(\"GPL\");\n")).map_err(failed)?;
    fs::write(sources.join("Makefile"), "obj-m := vme.o vme_fake.o vme_user.o\n").map_err(failed)?;
    let below = work.join("usr/src");
    // A flavour's headers refer to the common ones by their installation path.
    let makefile = format!("include {}\n", below.join(common).join("Makefile").display());
    fs::write(below.join(headers).join("Makefile"), makefile).map_err(failed)?;
    let directory = below.join(headers).display().to_string();
    let modules = format!("M={}", sources.display());
    command("make", &["--silent", "-C", &directory, &modules, "modules"])
        .map_err(|why| format!("cannot compile the VME modules: {why}"))?;
    Ok(sources)
}

/// Compiles the program that opens VME windows.
fn vme_window(store: &Store) -> Result<(), String> {
    let source = store.path().join("vme_window.c");
    fs::write(&source, VME_WINDOW).map_err(|e| format!("cannot write {}: {e}", source.display()))?;
    let [source, program] = [&source, &store.vme_window()].map(|path| path.display().to_string());
    command("gcc-12", &["-static", "-O1", "-Wall", "-Werror", "-s", "-o", &program, &source])
}

/// Extracts the VME driver from the kernel source, a nested archive.
fn unpack_vme(work: &Path, series: &str) -> Result<(), String> {
    let package = package(work, &format!("linux-source-{series}"))?;
    let failed = |e: std::io::Error| format!("cannot unpack {}: {e}", package.display());
    let archive = format!("./usr/src/linux-source-{series}.tar.xz");
    let members = VME_SOURCES.map(|file| format!("linux-source-{series}/{VME}/{file}"));
    // The last process stops at the last member, so the others may end with a broken pipe.
    let mut reader = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&package)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let outer = reader.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let mut inner = Command::new("tar")
        .args(["-xO", &archive])
        .stdin(outer)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let files = inner.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let unpacked = Command::new("tar")
        .args(["-xJ", "--occurrence=1"])
        .args(&members)
        .current_dir(work)
        .stdin(files)
        .status();
    for child in [&mut inner, &mut reader] {
        child.wait().map_err(failed)?;
    }
    match unpacked.map_err(failed)?.success() {
        true => Ok(()),
        false => Err(format!("{} has no driver of VME", package.display())),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = fs::copy(from, to);
    copied.map(drop).map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))
}

/// File with this name below a directory.
fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    let paths: Vec<PathBuf> = fs::read_dir(directory).ok()?.filter_map(|e| Some(e.ok()?.path())).collect();
    let here = paths.iter().find(|path| path.file_name().is_some_and(|n| n == name));
    here.cloned().or_else(|| paths.iter().filter(|path| path.is_dir()).find_map(|path| find(path, name)))
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
