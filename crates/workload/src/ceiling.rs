//! Ceilings: maximum throughput of memory, network, source and volume, each measured alone.
mod memory;
mod network;
mod source;
mod volume;

pub use memory::MemoryCeiling;
pub use network::NetworkCeiling;
pub use source::SourceCeiling;
pub use volume::{VolumeCeiling, VolumeMeasured, VolumeSpec};

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use crate::WorkloadError;
use crate::error::system;

fn loopback() -> Result<(TcpListener, SocketAddr), WorkloadError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(system("listen on loopback"))?;
    let address = listener.local_addr().map_err(system("listen on loopback"))?;
    Ok((listener, address))
}

/// Reads until end of stream; returns the number of bytes.
fn discard(mut stream: impl Read) -> std::io::Result<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut total = 0;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(n) => total += n as u64,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

fn join<T>(name: &'static str, thread: JoinHandle<T>) -> Result<T, WorkloadError> {
    thread.join().map_err(|_| WorkloadError::Thread { name })
}
