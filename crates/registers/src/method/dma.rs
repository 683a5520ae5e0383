//! The card's DMA engine, driven as its profile describes. The end of a transfer is polled in the command
//! register, so CPU time is part of the cost.
//!
//! Invariant: no transfer accesses the card's memory outside the range in the profile.
use std::sync::Arc;

use keepup_measure::clock::Clock;
use keepup_sys::register::{Span, Width};

use super::Method;
use crate::profile::{DmaProfile, Register};

/// Timeout of a transfer.
const TRANSFER_NS_MAX: u64 = 10_000_000_000;

/// A card, and the buffer in host memory that it can reach.
pub(super) trait Hardware {
    /// Reads a register.
    fn load(&mut self, offset: u64, width: Width) -> std::io::Result<u64>;
    /// Writes a register.
    fn store(&mut self, offset: u64, width: Width, value: u64) -> std::io::Result<()>;
    /// Bus address of the buffer.
    fn bus_address(&mut self) -> std::io::Result<u64>;
    /// Copies data to the start of the buffer.
    fn put(&mut self, data: &[u8]) -> std::io::Result<()>;
    /// Copies data from the start of the buffer.
    fn take(&mut self, data: &mut [u8]) -> std::io::Result<()>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    FromCard,
    ToCard,
}

/// A card's memory, read by its DMA engine.
pub(super) struct Dma<H> {
    profile: DmaProfile,
    hardware: H,
    clock: Arc<dyn Clock>,
    /// Whether the check of both directions is done or not allowed.
    is_checked: bool,
    data: Vec<u8>,
}

impl<H: Hardware> Dma<H> {
    pub(super) fn new(profile: DmaProfile, hardware: H, clock: Arc<dyn Clock>) -> Self {
        Self { profile, hardware, clock, is_checked: !profile.may_fill, data: Vec::new() }
    }

    fn command(&mut self) -> std::io::Result<u64> {
        let Register { offset, .. } = self.profile.command;
        let width = self.profile.command.width();
        let command = self.hardware.load(offset, width)?;
        match command == width.all_ones() {
            true => Err(std::io::Error::other(format!(
                "the command register at {offset:#x} reads as all ones: the device does not respond"
            ))),
            false => Ok(command),
        }
    }

    fn wait(&mut self) -> std::io::Result<()> {
        let begin_ns = self.clock.now_ns();
        while self.command()? & self.profile.busy != 0 {
            if self.clock.now_ns() - begin_ns > TRANSFER_NS_MAX {
                let what = format!("a transfer was not complete after {} s", TRANSFER_NS_MAX / 1_000_000_000);
                return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, what));
            }
        }
        Ok(())
    }

    /// Moves `bytes` from or to `offset` of the card's memory, in as many transfers as necessary.
    fn transfer(&mut self, direction: Direction, offset: u64, bytes: u64) -> std::io::Result<()> {
        let profile = self.profile;
        let bus = self.hardware.bus_address()?;
        let mut done = 0;
        while done < bytes {
            let part = (bytes - done).min(profile.transfer_max);
            let (card, host) = (profile.memory + offset + done, bus + done);
            let (source, destination, command) = match direction {
                Direction::FromCard => (card, host, profile.start | profile.from_card),
                Direction::ToCard => (host, card, profile.start),
            };
            self.wait()?;
            for (register, value) in [
                (profile.source, source),
                (profile.destination, destination),
                (profile.count, part),
                (profile.command, command),
            ] {
                self.hardware.store(register.offset, register.width(), value)?;
            }
            self.wait()?;
            done += part;
        }
        Ok(())
    }

    /// Fills the card's memory and reads it back.
    fn check(&mut self) -> std::io::Result<()> {
        let bytes = self.profile.memory_bytes;
        let (mut written, mut found) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        fastrand::Rng::with_seed(bytes).fill(&mut written);
        self.hardware.put(&written)?;
        self.transfer(Direction::ToCard, 0, bytes)?;
        // Overwrite the buffer, so that the data read back can only come from the card.
        found.iter_mut().zip(&written).for_each(|(left, byte)| *left = !byte);
        self.hardware.put(&found)?;
        self.transfer(Direction::FromCard, 0, bytes)?;
        self.hardware.take(&mut found)?;
        match written.iter().zip(&found).position(|(one, other)| one != other) {
            None => {
                self.is_checked = true;
                Ok(())
            }
            Some(at) => Err(std::io::Error::other(format!(
                "DMA data read back differ from the data written: byte {at} of {bytes} is {:#04x} \
                 instead of {:#04x}",
                found[at], written[at]
            ))),
        }
    }

    fn fetch(&mut self, span: &Span) -> std::io::Result<u64> {
        if span.is_fifo {
            return Err(std::io::Error::other("DMA reads consecutive registers, not a FIFO"));
        }
        span.check(self.profile.memory_bytes).map_err(std::io::Error::other)?;
        let bytes = span.bytes().unwrap_or(u64::MAX);
        let alignment = self.profile.alignment;
        if !span.offset.is_multiple_of(alignment) || !bytes.is_multiple_of(alignment) {
            return Err(std::io::Error::other(format!(
                "{bytes} bytes at {:#x}: the card moves only multiples of {alignment} bytes",
                span.offset
            )));
        }
        self.prepare()?;
        self.transfer(Direction::FromCard, span.offset, bytes)?;
        Ok(bytes)
    }
}

impl<H: Hardware> Method for Dma<H> {
    fn name(&self) -> &'static str {
        "dma"
    }

    fn bytes(&self) -> u64 {
        self.profile.memory_bytes
    }

    fn words_max(&self, width: Width) -> Option<u64> {
        Some((self.profile.transfer_max / width.bytes() as u64).max(1))
    }

    fn has_registers(&self) -> bool {
        false
    }

    fn prepare(&mut self) -> std::io::Result<()> {
        if self.is_checked { Ok(()) } else { self.check() }
    }

    fn read(&mut self, span: &Span) -> std::io::Result<()> {
        self.fetch(span).map(drop)
    }

    fn values(&mut self, span: &Span, values: &mut Vec<u64>) -> std::io::Result<()> {
        let bytes = self.fetch(span)?;
        self.data.resize(bytes as usize, 0);
        self.hardware.take(&mut self.data)?;
        values.clear();
        values.extend(self.data.chunks_exact(span.width.bytes()).map(|bytes| {
            let mut register = [0; 8];
            register[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(register)
        }));
        Ok(())
    }
}

#[cfg(test)]
#[path = "dma_tests.rs"]
mod tests;
