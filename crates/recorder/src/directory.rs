//! Directories from which files are recorded: the thread that watches each of them and sends its files.
//!
//! Once the recording has started, a slow disk or file server stops that thread and nothing else. The socket
//! pair to the intake bounds the memory: files pass from the page cache through the socket's buffer into the
//! block (`sendfile`).
mod reader;
mod scan;
mod tally;
mod tree;
mod watch;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_sources::directory::{DirectoryAddress, SETTLE};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use self::reader::DirectoryReader;
use crate::switches::Switches;
use crate::threads::{catch_panic, spawn};
use crate::{RecorderConfig, RecorderError};

/// Wanted send buffer of the socket, bytes; the kernel may give less (`net.core.wmem_max`).
const BUFFER_BYTES: usize = 1 << 20;
/// Cause of an error of the kernel when it watches as many directories as it may for this user.
const WATCHES: &str = "it has more directories than the kernel may watch";
/// File systems that other machines change too, which the kernel does not report here: magic number and name,
/// as in `statfs(2)`.
const NETWORKED: [(u64, &str); 13] = [
    (0x6969, "NFS"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x00C3_6400, "CephFS"),
    (0xFE53_4D42, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0x517B, "SMB"),
    (0x5346_414F, "AFS"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
];

/// Lists a directory, and starts its thread, which sends nothing until the recording starts. Returns the
/// intake's end of the socket pair, and a note for the user.
pub(crate) fn start(
    index: usize,
    address: &DirectoryAddress,
    config: &RecorderConfig,
    (switches, clock): (&Arc<Switches>, &Arc<dyn Clock>),
) -> Result<(OwnedFd, Option<Cause>), RecorderError> {
    let fail = |e: rustix::io::Errno| RecorderError::Directory {
        path: address.path.clone(),
        source: match e {
            // The kernel's text for it is "No space left on device".
            rustix::io::Errno::NOSPC => std::io::Error::new(std::io::ErrorKind::StorageFull, WATCHES),
            e => std::io::Error::from(e),
        },
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(CWD, &address.path, flags, Mode::empty()).map_err(fail)?;
    let network = networked(&directory).map_err(fail)?;
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(fail)?;
    rustix::io::ioctl_fionbio(&ours, true).map_err(fail)?;
    let _ = sockopt::set_socket_send_buffer_size_force(&theirs, BUFFER_BYTES)
        .or_else(|_| sockopt::set_socket_send_buffer_size(&theirs, BUFFER_BYTES));
    let (is_networked, limit) = (network.is_some(), config.event_bytes_max());
    let shared = (Arc::clone(switches), Arc::clone(clock));
    let ending = Arc::clone(switches);
    let mut reader = DirectoryReader::new(address.clone(), (directory, theirs), is_networked, limit, shared)
        .map_err(fail)?;
    // The thread ends when the socket closes. It is not joined: a file server that does not answer must
    // not keep the recording from ending.
    drop(spawn(format!("ku-files-{index}"), config.cpus.clone(), move || {
        // The intake sees the end of the socket after the reason.
        catch_panic(|| reader.run()).unwrap_or_else(|why| ending.fail(&why));
        Ok(())
    })?);
    Ok((ours, network.map(|name| note(address, name))))
}

fn note(address: &DirectoryAddress, network: &str) -> Cause {
    let seconds = address.settle.unwrap_or(SETTLE).as_secs_f64();
    let what = format!(
        "{address}: {network}; the kernel reports only files that this machine writes, so the directory is \
         scanned every {seconds} s"
    );
    Cause::new(what).with_hint("settle=SECONDS changes the interval")
}

/// Name of the file system, if other machines may change it.
fn networked(directory: impl AsFd) -> rustix::io::Result<Option<&'static str>> {
    // The type is 32 bits wide, with a sign on some machines.
    let kind = rustix::fs::fstatfs(directory)?.f_type as u64 & 0xFFFF_FFFF;
    Ok(NETWORKED.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name))
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
