//! Helpers that need root: small file systems, network namespaces with shaped links, throttled
//! devices. Each prints a message when unavailable, and is removed when dropped.
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether tests may change the system; prints a message otherwise.
pub fn allowed(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(test, "needs root");
    }
    root
}

/// Environment variable; its value `required` turns every skipped test into a failure, as `.ci/run` wants it.
const SYSTEM: &str = "KEEPUP_SYSTEM";

/// Reports a test that cannot run on this machine, past the capture of the test harness: output of a test
/// that passes is not shown otherwise.
///
/// # Panics
/// When `KEEPUP_SYSTEM` is `required`.
pub fn skip(test: &str, why: &str) {
    let line = skip_line(test, why, std::env::var(SYSTEM).as_deref() == Ok("required"));
    let line = line.unwrap_or_else(|failure| panic!("{failure}"));
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// The line that reports a skip; the failure where none is allowed.
fn skip_line(test: &str, why: &str, is_required: bool) -> Result<String, String> {
    match is_required {
        true => Err(format!("{test} cannot run here: {why}\nhint: unset {SYSTEM} to skip it")),
        false => Ok(format!("SKIPPED: {test}: {}", why.replace('\n', " "))),
    }
}

/// Runs a program; returns its output.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|e| format!("{program}: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

pub(crate) fn command(program: &str, arguments: &[&str]) -> Result<(), String> {
    output(program, arguments).map(drop)
}

/// A tmpfs of fixed size.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts a tmpfs of `mebibytes` on a new directory `path`.
    ///
    /// # Errors
    /// System error.
    pub fn mount(path: &Path, mebibytes: u32) -> Result<Self, String> {
        std::fs::create_dir_all(path).map_err(|e| e.to_string())?;
        let size = format!("size={mebibytes}m");
        command("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &path.to_string_lossy()])?;
        Ok(Self { path: path.into() })
    }

    /// Mount point.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(command("umount", &["-l", &self.path.to_string_lossy()]));
    }
}

/// A network namespace with a rate-limited loopback.
#[derive(Debug)]
pub struct ShapedNamespace {
    name: String,
}

impl ShapedNamespace {
    /// Creates a namespace with a loopback of `megabits` per second.
    ///
    /// # Errors
    /// System error.
    pub fn create(name: &str, megabits: u32) -> Result<Self, String> {
        command("ip", &["netns", "add", name])?;
        let namespace = Self { name: name.into() };
        let rate = format!("{megabits}mbit");
        let shape =
            ["qdisc", "add", "dev", "lo", "root", "tbf", "rate", &rate, "burst", "256kb", "latency", "50ms"];
        inside(name, "ip", &["link", "set", "lo", "up"])?;
        inside(name, "tc", &shape)?;
        Ok(namespace)
    }

    /// Name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for ShapedNamespace {
    fn drop(&mut self) {
        drop(command("ip", &["netns", "del", &self.name]));
    }
}

/// A network namespace with a veth pair, `veth-a` and `veth-b`, both up.
#[derive(Debug)]
pub struct VethNamespace {
    name: String,
}

impl VethNamespace {
    /// Creates a namespace in which `veth-a` has `address`, as in `10.0.0.1/24`.
    ///
    /// # Errors
    /// System error.
    pub fn create(name: &str, address: &str) -> Result<Self, String> {
        command("ip", &["netns", "add", name])?;
        let namespace = Self { name: name.into() };
        namespace.inside("ip", &["link", "add", "veth-a", "type", "veth", "peer", "name", "veth-b"])?;
        namespace.inside("ip", &["addr", "add", address, "dev", "veth-a"])?;
        for interface in ["lo", "veth-a", "veth-b"] {
            namespace.inside("ip", &["link", "set", interface, "up"])?;
        }
        Ok(namespace)
    }

    /// Runs a program in the namespace.
    ///
    /// # Errors
    /// System error.
    pub fn inside(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        inside(&self.name, program, arguments)
    }

    /// Name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for VethNamespace {
    fn drop(&mut self) {
        drop(command("ip", &["netns", "del", &self.name]));
    }
}

/// A network namespace with a loopback whose TCP sockets hold little.
#[derive(Debug)]
pub struct SmallSockets {
    name: String,
}

impl SmallSockets {
    /// Creates a namespace in which a socket holds at most `bytes` in each direction, with the kernel's
    /// overhead.
    ///
    /// # Errors
    /// System error.
    pub fn create(name: &str, bytes: u32) -> Result<Self, String> {
        command("ip", &["netns", "add", name])?;
        let namespace = Self { name: name.into() };
        inside(name, "ip", &["link", "set", "lo", "up"])?;
        for limits in ["tcp_rmem", "tcp_wmem"] {
            let write = format!("echo 4096 {bytes} {bytes} > /proc/sys/net/ipv4/{limits}");
            inside(name, "sh", &["-c", &write])?;
        }
        Ok(namespace)
    }

    /// Name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for SmallSockets {
    fn drop(&mut self) {
        drop(command("ip", &["netns", "del", &self.name]));
    }
}

fn inside(namespace: &str, program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut all = vec!["netns", "exec", namespace, program];
    all.extend(arguments);
    command("ip", &all)
}

/// A control group (version 1) with throttled writes to some devices.
#[derive(Debug)]
pub struct ThrottledWrites {
    group: PathBuf,
    devices: Vec<String>,
}

impl ThrottledWrites {
    /// Throttles writes to the device of `path` to `bytes_per_second`, for processes added later; 0
    /// means no limit.
    ///
    /// # Errors
    /// System error, or no such controller.
    pub fn create(name: &str, path: &Path, bytes_per_second: u64) -> Result<Self, String> {
        Self::each(name, &[path], bytes_per_second)
    }

    /// The same for the devices of several paths, each with its own limit.
    ///
    /// # Errors
    /// System error.
    pub fn each(name: &str, paths: &[&Path], bytes_per_second: u64) -> Result<Self, String> {
        let devices = paths.iter().map(|path| device(path)).collect::<Result<_, String>>()?;
        let group = Path::new("/sys/fs/cgroup/blkio").join(name);
        std::fs::create_dir(&group).map_err(|e| format!("{}: {e}", group.display()))?;
        let throttled = Self { group, devices };
        throttled.limit(bytes_per_second)?;
        Ok(throttled)
    }

    /// Changes the limit, also for waiting writes; 0 removes it.
    ///
    /// # Errors
    /// System error.
    pub fn limit(&self, bytes_per_second: u64) -> Result<(), String> {
        let file = self.group.join("blkio.throttle.write_bps_device");
        self.devices.iter().try_for_each(|device| {
            let rule = format!("{device} {bytes_per_second}");
            std::fs::write(&file, rule).map_err(|e| format!("{}: {e}", file.display()))
        })
    }

    /// The file that receives process ids.
    pub fn entry(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for ThrottledWrites {
    fn drop(&mut self) {
        remove_group(&self.group);
    }
}

/// Major and minor number of the device under a path, as control groups have them.
fn device(path: &Path) -> Result<String, String> {
    let stat = rustix::fs::stat(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(format!("{}:{}", rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev)))
}

/// A group of processes whose reads from a device are throttled (control groups, version 1); what the page
/// cache has is not.
#[derive(Debug)]
pub struct ThrottledReads {
    group: PathBuf,
}

impl ThrottledReads {
    /// Throttles reads from the device under `path` to `bytes_per_second`, for the processes entered later.
    ///
    /// # Errors
    /// What the system said; also where there is no such controller.
    pub fn create(name: &str, path: &Path, bytes_per_second: u64) -> Result<Self, String> {
        let device = device(path)?;
        let group = Path::new("/sys/fs/cgroup/blkio").join(name);
        std::fs::create_dir(&group).map_err(|e| format!("{}: {e}", group.display()))?;
        let throttled = Self { group };
        let file = throttled.group.join("blkio.throttle.read_bps_device");
        std::fs::write(&file, format!("{device} {bytes_per_second}"))
            .map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(throttled)
    }

    /// The file that takes the ids of processes.
    pub fn entry(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for ThrottledReads {
    fn drop(&mut self) {
        remove_group(&self.group);
    }
}

/// A control group (version 1) with limited memory, including page cache.
#[derive(Debug)]
pub struct SmallMemory {
    group: PathBuf,
}

impl SmallMemory {
    /// Limits the memory of processes added later to `bytes`.
    ///
    /// # Errors
    /// System error, or no such controller.
    pub fn create(name: &str, bytes: u64) -> Result<Self, String> {
        let group = Path::new("/sys/fs/cgroup/memory").join(name);
        std::fs::create_dir(&group).map_err(|e| format!("{}: {e}", group.display()))?;
        let limited = Self { group };
        let file = limited.group.join("memory.limit_in_bytes");
        std::fs::write(&file, bytes.to_string()).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(limited)
    }

    /// The file that receives process ids.
    pub fn entry(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for SmallMemory {
    fn drop(&mut self) {
        remove_group(&self.group);
    }
}

/// Removes a group; processes that have just ended may be counted for a moment.
fn remove_group(group: &Path) {
    for _ in 0..50 {
        if std::fs::remove_dir(group).is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[cfg(test)]
#[path = "root_tests.rs"]
mod tests;
