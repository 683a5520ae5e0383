//! Socket of a running controller for other commands: one line with a command, one line of JSON in return.
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::time::Duration;

use keepup_error::Cause;
use rustix::process::geteuid;

use crate::error::FleetError;
use crate::link::Waker;

/// Longest command, bytes.
const COMMAND_BYTES_MAX: u64 = 256;
/// Longest answer, bytes: the reports of 4096 hosts.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Timeout of reads, writes and answers.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for writing the last answer.
const LAST_TIMEOUT: Duration = Duration::from_secs(2);
/// Directory of the sockets without `XDG_RUNTIME_DIR`, followed by the user id.
const FALLBACK: &str = "/tmp/keepup";

/// Command of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// State of the fleet.
    Status,
    /// Measure the time of commands.
    Probe,
    /// Shut down the fleet.
    Down,
}

impl Command {
    const ALL: [Self; 3] = [Self::Status, Self::Probe, Self::Down];

    const fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Probe => "probe",
            Self::Down => "down",
        }
    }
}

/// A command with the channel for its answer.
#[derive(Debug)]
pub struct Request {
    /// The command.
    pub command: Command,
    answer: SyncSender<String>,
    /// Disconnected once the answer was written.
    written: Receiver<()>,
}

impl Request {
    /// Answers with one line of JSON.
    pub fn answer(&self, json: String) {
        // The client may have disconnected.
        drop(self.answer.try_send(json));
    }

    /// Answers, and waits until the answer was written: for a program that is about to exit.
    pub fn answer_last(&self, json: String) {
        self.answer(json);
        let _ = self.written.recv_timeout(LAST_TIMEOUT);
    }
}

/// Path of the socket for a fleet file, derived from the real path of the file.
///
/// # Errors
/// No such file.
pub fn socket_of(file: &Path) -> Result<PathBuf, FleetError> {
    let cannot = |error: std::io::Error| failed(format!("{}: {error}", file.display()));
    let real = file.canonicalize().map_err(cannot)?;
    let digest = blake3::hash(real.as_os_str().as_encoded_bytes()).to_hex();
    let directory = match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(directory) if directory.is_absolute() => directory.join("keepup"),
        _ => PathBuf::from(format!("{FALLBACK}-{}", geteuid().as_raw())),
    };
    Ok(directory.join(format!("fleet-{}.sock", &digest[..16])))
}

/// Checks that no controller listens on this socket.
///
/// # Errors
/// One does.
pub fn check_free(path: &Path) -> Result<(), FleetError> {
    if UnixStream::connect(path).is_err() {
        return Ok(());
    }
    Err(FleetError::Control(
        Cause::new("a controller already runs for this file").with_hint("keepup fleet down FILE"),
    ))
}

/// Listening socket of a controller; removed when dropped.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    requests: Receiver<Request>,
}

impl Server {
    /// Opens the socket with access for this user only; calls `waker` for each request.
    ///
    /// # Errors
    /// A controller of this fleet runs already, or the socket cannot be created.
    pub fn open(path: &Path, waker: Waker) -> Result<Self, FleetError> {
        let directory = path.parent().ok_or_else(|| failed("the socket has no directory".to_owned()))?;
        private_directory(directory)?;
        check_free(path)?;
        let cannot = |error: std::io::Error| failed(format!("{}: {error}", path.display()));
        // Left by a controller that was killed.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(cannot(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(cannot)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(cannot)?;
        let (sender, requests) = mpsc::channel();
        let server = Self { path: path.to_owned(), requests };
        let accept = move || {
            for stream in listener.incoming().flatten() {
                // One client at a time. The timeout ends a silent one.
                drop(serve(&stream, &sender, &waker));
            }
        };
        std::thread::Builder::new().name("ku-fleet-ctl".into()).spawn(accept).map_err(cannot)?;
        Ok(server)
    }

    /// Next pending command.
    pub fn request(&self) -> Option<Request> {
        self.requests.try_recv().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// Creates the directory, or checks that no other user can create files in it.
fn private_directory(directory: &Path) -> Result<(), FleetError> {
    let cannot = |error: std::io::Error| failed(format!("{}: {error}", directory.display()));
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(cannot(error)),
        _ => {}
    }
    let found = directory.symlink_metadata().map_err(cannot)?;
    if found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    let why = format!("{} belongs to another user or can be changed by others", directory.display());
    Err(FleetError::Control(Cause::new(why).with_hint("remove it, or set XDG_RUNTIME_DIR")))
}

fn serve(stream: &UnixStream, sender: &Sender<Request>, waker: &Waker) -> std::io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream).take(COMMAND_BYTES_MAX).read_line(&mut line)?;
    let Some(command) = Command::ALL.into_iter().find(|command| command.name() == line.trim_end()) else {
        return Ok(());
    };
    let (answer, answered) = mpsc::sync_channel(1);
    let (_is_writing, written) = mpsc::channel();
    if sender.send(Request { command, answer, written }).is_ok() {
        waker.wake();
        if let Ok(json) = answered.recv_timeout(TIMEOUT) {
            let mut stream = stream;
            stream.write_all(json.as_bytes())?;
            stream.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// Sends a command to a running controller; returns its answer as JSON.
///
/// # Errors
/// No controller runs, or it does not answer.
pub fn ask(path: &Path, command: Command) -> Result<String, FleetError> {
    let mut stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => FleetError::Control(
            Cause::new("no controller runs for this file").with_hint("keepup fleet up FILE"),
        ),
        _ => failed(format!("{}: {error}", path.display())),
    })?;
    let mut answer = String::new();
    let asked = (|| {
        stream.set_read_timeout(Some(TIMEOUT * 2))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        writeln!(stream, "{}", command.name())?;
        (&mut stream).take(ANSWER_BYTES_MAX).read_to_string(&mut answer)
    })();
    asked.map_err(|error| failed(format!("{}: {error}", path.display())))?;
    match answer.trim_end() {
        "" => Err(failed("its controller does not answer".to_owned())),
        answer => Ok(answer.to_owned()),
    }
}

fn failed(why: String) -> FleetError {
    FleetError::Control(why.into())
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
