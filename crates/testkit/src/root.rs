//! What needs root: small file systems, network namespaces with shaped links, throttled devices. Each says
//! visibly when it cannot be had, and is undone when dropped.
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether tests may change the system; says so when they may not.
pub fn allowed(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(test, "needs root");
    }
    root
}

/// Says visibly that a test did not run.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub fn skip(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}

/// Runs a program; what it printed.
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

/// A file system in memory of a fixed size.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts one of `mebibytes` on a new directory `path`.
    ///
    /// # Errors
    /// What the system said.
    pub fn mount(path: &Path, mebibytes: u32) -> Result<Self, String> {
        std::fs::create_dir_all(path).map_err(|e| e.to_string())?;
        let size = format!("size={mebibytes}m");
        command("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &path.to_string_lossy()])?;
        Ok(Self { path: path.into() })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(command("umount", &["-l", &self.path.to_string_lossy()]));
    }
}

/// A network namespace of its own, whose loopback is shaped to a rate.
#[derive(Debug)]
pub struct ShapedNamespace {
    name: String,
}

impl ShapedNamespace {
    /// Makes a namespace whose loopback carries `megabits` per second.
    ///
    /// # Errors
    /// What the system said.
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

    /// Its name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for ShapedNamespace {
    fn drop(&mut self) {
        drop(command("ip", &["netns", "del", &self.name]));
    }
}

/// A network namespace of its own with a pair of interfaces, `veth-a` and `veth-b`, that are up.
#[derive(Debug)]
pub struct VethNamespace {
    name: String,
}

impl VethNamespace {
    /// Makes a namespace in which `veth-a` has `address`, as in `10.0.0.1/24`.
    ///
    /// # Errors
    /// What the system said.
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

    /// Runs a program in it.
    ///
    /// # Errors
    /// What the system said.
    pub fn inside(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        inside(&self.name, program, arguments)
    }

    /// Its name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for VethNamespace {
    fn drop(&mut self) {
        drop(command("ip", &["netns", "del", &self.name]));
    }
}

fn inside(namespace: &str, program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut all = vec!["netns", "exec", namespace, program];
    all.extend(arguments);
    command("ip", &all)
}

/// A group of processes whose writes to some devices are throttled (control groups, version 1).
#[derive(Debug)]
pub struct ThrottledWrites {
    group: PathBuf,
    devices: Vec<String>,
}

impl ThrottledWrites {
    /// Throttles writes to the device under `path` to `bytes_per_second`, for the processes entered later;
    /// 0 throttles nothing.
    ///
    /// # Errors
    /// What the system said; also where there is no such controller.
    pub fn create(name: &str, path: &Path, bytes_per_second: u64) -> Result<Self, String> {
        Self::each(name, &[path], bytes_per_second)
    }

    /// The same for the devices under several paths, each by itself.
    ///
    /// # Errors
    /// What the system said.
    pub fn each(name: &str, paths: &[&Path], bytes_per_second: u64) -> Result<Self, String> {
        let device = |path: &&Path| {
            let stat = rustix::fs::stat(*path).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok(format!("{}:{}", rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev)))
        };
        let devices = paths.iter().map(device).collect::<Result<_, String>>()?;
        let group = Path::new("/sys/fs/cgroup/blkio").join(name);
        std::fs::create_dir(&group).map_err(|e| format!("{}: {e}", group.display()))?;
        let throttled = Self { group, devices };
        throttled.limit(bytes_per_second)?;
        Ok(throttled)
    }

    /// Sets another limit, also for writes that wait already; 0 takes it away.
    ///
    /// # Errors
    /// What the system said.
    pub fn limit(&self, bytes_per_second: u64) -> Result<(), String> {
        let file = self.group.join("blkio.throttle.write_bps_device");
        self.devices.iter().try_for_each(|device| {
            let rule = format!("{device} {bytes_per_second}");
            std::fs::write(&file, rule).map_err(|e| format!("{}: {e}", file.display()))
        })
    }

    /// The file that takes the ids of processes.
    pub fn entry(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for ThrottledWrites {
    fn drop(&mut self) {
        remove_group(&self.group);
    }
}

/// A group of processes that share little memory, their page cache included (control groups, version 1).
#[derive(Debug)]
pub struct SmallMemory {
    group: PathBuf,
}

impl SmallMemory {
    /// Limits the memory of the processes entered later to `bytes`.
    ///
    /// # Errors
    /// What the system said; also where there is no such controller.
    pub fn create(name: &str, bytes: u64) -> Result<Self, String> {
        let group = Path::new("/sys/fs/cgroup/memory").join(name);
        std::fs::create_dir(&group).map_err(|e| format!("{}: {e}", group.display()))?;
        let limited = Self { group };
        let file = limited.group.join("memory.limit_in_bytes");
        std::fs::write(&file, bytes.to_string()).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(limited)
    }

    /// The file that takes the ids of processes.
    pub fn entry(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for SmallMemory {
    fn drop(&mut self) {
        remove_group(&self.group);
    }
}

/// Removes a group; processes that have just ended may still be counted for a moment.
fn remove_group(group: &Path) {
    for _ in 0..50 {
        if std::fs::remove_dir(group).is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
