//! Plain TCP sender with minimal CPU use, for receivers without a sender of their own.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

/// Bytes per write.
const PIECE_BYTES: usize = 256 << 10;
/// Size of the random data.
const BUFFER_BYTES: usize = 2 * PIECE_BYTES;
/// Offset of the next piece in the random data: a page, so that pieces differ.
const STRIDE_BYTES: usize = 4096;

/// Command that runs this program as sender.
pub(super) fn command(to: SocketAddr, bytes: u64) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("find this program")?);
    command.args(["peers", "send", &to.to_string(), &bytes.to_string()]);
    Ok(command)
}

/// Sends `bytes` and prints the duration in seconds.
pub(super) fn send(to: SocketAddr, bytes: u64) -> Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut buffer))
        .context("read random data")?;
    let mut stream = TcpStream::connect(to).with_context(|| format!("connect to {to}"))?;
    let start = Instant::now();
    let mut left = bytes;
    let mut at = 0;
    while left > 0 {
        let length = left.min(PIECE_BYTES as u64) as usize;
        stream.write_all(&buffer[at..at + length]).with_context(|| format!("send to {to}"))?;
        left -= length as u64;
        at = (at + STRIDE_BYTES) % (BUFFER_BYTES - PIECE_BYTES);
    }
    stream.shutdown(Shutdown::Write).with_context(|| format!("end the stream to {to}"))?;
    println!("{}", start.elapsed().as_secs_f64());
    Ok(())
}

/// Rate by the clock of the sender, bytes per second, from its output.
pub(super) fn accepted(said: &str, bytes: u64) -> Option<f64> {
    let seconds: f64 = said.trim().parse().ok()?;
    Some(bytes as f64 / seconds).filter(|rate| rate.is_finite())
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
