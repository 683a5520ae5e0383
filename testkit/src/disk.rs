//! A disk with stalls, delays and errors on demand: files in memory, served through FUSE by a child
//! process.
//!
//! The child is the test program itself, started for one of its tests (see [`serve_if_asked`]), so
//! that no other program is needed. Invariant: a stopped server is always resumed, when its disk is
//! dropped or the test's thread dies.
mod mischief;
mod server;
mod tree;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, set_parent_process_death_signal, waitid,
};

/// Environment variable with the mount point of the child.
const WHERE: &str = "KEEPUP_TEST_DISK";
/// Environment variable that disables file locks in the child.
const WITHOUT_LOCKS: &str = "KEEPUP_TEST_WITHOUT_LOCKS";
/// Acknowledgement of a command by the server, at the end of a line.
const OBEYED: &str = "obeyed\n";
/// Mount timeout; mounting takes milliseconds.
const MOUNT_LIMIT: Duration = Duration::from_secs(20);

/// A disk with faults on demand.
#[derive(Debug)]
pub struct FaultyDisk {
    path: PathBuf,
    server: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl FaultyDisk {
    /// Mounts a disk on a new directory `path`, absolute. `test` is the full name of the ignored
    /// test of this program that calls [`serve_if_asked`].
    ///
    /// # Errors
    /// System error; requires `/dev/fuse` and the right to mount.
    pub fn mount(path: &Path, test: &str) -> Result<Self, String> {
        Self::mount_with(path, test, &[])
    }

    /// The same for a file system without locks.
    ///
    /// # Errors
    /// As [`FaultyDisk::mount`].
    pub fn mount_without_locks(path: &Path, test: &str) -> Result<Self, String> {
        Self::mount_with(path, test, &[(WITHOUT_LOCKS, "1")])
    }

    fn mount_with(path: &Path, test: &str, environment: &[(&str, &str)]) -> Result<Self, String> {
        if !Path::new("/dev/fuse").exists() {
            return Err("needs /dev/fuse".into());
        }
        std::fs::create_dir_all(path).map_err(|e| e.to_string())?;
        let outside = device(path)?;
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut server = Command::new(program)
            .args([test, "--exact", "--ignored", "--nocapture"])
            .env(WHERE, path)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        let orders = server.stdin.take().ok_or("no way to give orders")?;
        let answers = BufReader::new(server.stdout.take().ok_or("no way to hear answers")?);
        let mut disk = Self { path: path.into(), server, orders, answers };
        let deadline = Instant::now() + MOUNT_LIMIT;
        while device(path)? == outside {
            let ended = disk.server.try_wait().map_err(|e| e.to_string())?.is_some();
            if ended || Instant::now() > deadline {
                return Err(format!("nothing was mounted: {}", disk.last_words()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(disk)
    }

    /// Stops the server for `stall`.
    pub fn freeze(&self, stall: Duration) {
        self.stop();
        std::thread::sleep(stall);
        self.signal(Signal::CONT);
    }

    /// Delays each write by at least `pause` from now on.
    ///
    /// # Errors
    /// The server has ended.
    pub fn slow_down(&mut self, pause: Duration) -> std::io::Result<()> {
        self.order(&format!("delay {}", pause.as_millis()))
    }

    /// Fails writes with EIO from now on.
    ///
    /// # Errors
    /// The server has ended.
    pub fn break_down(&mut self) -> std::io::Result<()> {
        self.order("fail writes")
    }

    /// Fails writes with ENOSPC from now on.
    ///
    /// # Errors
    /// The server has ended.
    pub fn fill_up(&mut self) -> std::io::Result<()> {
        self.order("fail space")
    }

    /// Fails reads with EIO from now on.
    ///
    /// # Errors
    /// The server has ended.
    pub fn fail_reads(&mut self) -> std::io::Result<()> {
        self.order("fail reads")
    }

    /// Fails the next flush with EIO; later ones succeed.
    ///
    /// # Errors
    /// The server has ended.
    pub fn fail_a_flush(&mut self) -> std::io::Result<()> {
        self.order("fail flushes")
    }

    /// Corrupts silently, once: the read or write of file `name` that covers `offset`, after `skip`
    /// of them. `what` is `flip-read`, `flip-write` (one bit), `lose`, or `move TO` (stored at
    /// offset TO instead).
    ///
    /// # Errors
    /// The server has ended.
    pub fn do_wrong(&mut self, name: &str, offset: u64, skip: u64, what: &str) -> std::io::Result<()> {
        self.order(&format!("wrong {name} {offset} {skip} {what}"))
    }

    /// Sends a command and waits until it is in effect.
    fn order(&mut self, order: &str) -> std::io::Result<()> {
        writeln!(self.orders, "{order}")?;
        let mut answer = String::new();
        // The test program has printed other lines before.
        while !answer.ends_with(OBEYED) {
            answer.clear();
            if self.answers.read_line(&mut answer)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Stops the server and waits until all its threads are stopped: until then one of them may
    /// still complete a write.
    fn stop(&self) {
        self.signal(Signal::STOP);
        let Some(id) = self.server_id() else { return };
        // Ended servers are not reaped.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(id), options), Err(rustix::io::Errno::INTR)) {}
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.server_id() {
            let _ = kill_process(id, signal);
        }
    }

    /// Valid until the drop, because the server is not reaped before.
    fn server_id(&self) -> Option<Pid> {
        i32::try_from(self.server.id()).ok().and_then(Pid::from_raw)
    }

    /// Stops the server; returns its stderr.
    fn last_words(&mut self) -> String {
        drop(self.server.kill());
        let mut text = String::new();
        if let Some(mut stderr) = self.server.stderr.take() {
            drop(stderr.read_to_string(&mut text));
        }
        text.trim().to_owned()
    }
}

impl Drop for FaultyDisk {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
        // Unmounting fails if it was never mounted, which is fine.
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

fn device(path: &Path) -> Result<u64, String> {
    std::fs::metadata(path).map(|m| m.dev()).map_err(|e| e.to_string())
}

/// Serves a disk if this process was started by [`FaultyDisk::mount`], until stopped; does nothing
/// otherwise. Call it from an ignored test.
///
/// # Panics
/// Nothing can be mounted; the test that requested the disk reports the reason.
pub fn serve_if_asked() {
    let Some(path) = std::env::var_os(WHERE) else { return };
    // If the test dies while the server is stopped, the server is resumed, reads end of file and
    // unmounts.
    let tied = set_parent_process_death_signal(Some(Signal::CONT));
    let served = tied
        .map_err(std::io::Error::from)
        .and_then(|()| server::serve(Path::new(&path), std::io::BufReader::new(std::io::stdin())));
    if let Err(e) = served {
        panic!("cannot serve {}: {e}", Path::new(&path).display());
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
