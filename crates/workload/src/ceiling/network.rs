//! Network ceiling: throughput of one TCP connection, as measured by netperf and iperf3.
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{discard, join, loopback};
use crate::error::system;
use crate::{Context, Footprint, Workload, WorkloadError};

const CHUNK_BYTES: usize = 256 << 10;

/// Sends over loopback to a thread that discards the data.
#[derive(Debug)]
pub struct NetworkCeiling {
    time: Duration,
    bytes_per_second: f64,
}

impl NetworkCeiling {
    /// A measurement of `time`.
    pub fn new(time: Duration) -> Self {
        Self { time, bytes_per_second: 0.0 }
    }
}

impl Workload for NetworkCeiling {
    type Measured = f64;
    type Error = WorkloadError;

    fn name(&self) -> &'static str {
        "network"
    }

    fn plan(&self) -> Footprint {
        Footprint { time: self.time, ..Footprint::default() }
    }

    fn prepare(&mut self, _context: &mut Context) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        let (listener, address) = loopback()?;
        let receiver = std::thread::spawn(move || discard(listener.accept()?.0));
        let mut stream = TcpStream::connect(address).map_err(system("connect over loopback"))?;
        let chunk = vec![0x5au8; CHUNK_BYTES];
        let begin_ns = context.clock.now_ns();
        let end_ns = begin_ns + self.time.as_nanos() as u64;
        while context.clock.now_ns() < end_ns && !context.stop.load(Ordering::Acquire) {
            stream.write_all(&chunk).map_err(system("send over loopback"))?;
        }
        drop(stream);
        let bytes = join("network receiver", receiver)?.map_err(system("receive over loopback"))?;
        let elapsed_ns = context.clock.now_ns() - begin_ns;
        self.bytes_per_second = bytes as f64 / (elapsed_ns.max(1) as f64 / 1e9);
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn measured(&mut self) -> Result<f64, WorkloadError> {
        Ok(self.bytes_per_second)
    }
}
