//! DMA with a simulated card: both directions, split transfers, and faulty cards.
use std::collections::BTreeMap;

use keepup_measure::clock::SystemClock;

use super::*;
use crate::TargetProfile;

const BUS: u64 = 0x800_0000;

/// Fault of the simulated card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Flips a bit of the data moved to the host.
    Flips,
    /// Moves nothing.
    Idle,
    /// Reads as all ones.
    Gone,
    /// Never completes a transfer.
    Endless,
}

struct SimulatedCard {
    registers: BTreeMap<u64, u64>,
    card: Vec<u8>,
    host: Vec<u8>,
    fault: Fault,
    /// Reads of the command until a transfer is done.
    busy: u32,
    transfers: Vec<(u64, u64, u64)>,
}

impl Hardware for SimulatedCard {
    fn load(&mut self, offset: u64, width: Width) -> std::io::Result<u64> {
        assert_eq!((offset, width), (0x98, Width::Bits32));
        if self.fault == Fault::Gone {
            return Ok(width.all_ones());
        }
        self.busy = self.busy.saturating_sub(u32::from(self.fault != Fault::Endless));
        Ok(u64::from(self.busy > 0))
    }

    fn store(&mut self, offset: u64, width: Width, value: u64) -> std::io::Result<()> {
        assert!(value <= width.all_ones() && self.busy == 0, "a transfer is in progress");
        self.registers.insert(offset, value);
        if offset == 0x98 {
            let [source, destination, count] = [0x80, 0x88, 0x90].map(|offset| self.registers[&offset]);
            self.transfers.push((source, destination, count));
            self.busy = 3;
            let from_card = value & 2 != 0;
            let (card, host) = if from_card { (source, destination) } else { (destination, source) };
            let (card, host) = ((card - 0x40000) as usize, (host - BUS) as usize);
            let count = count as usize;
            match (from_card, self.fault) {
                (_, Fault::Idle) => {}
                (true, fault) => {
                    self.host[host..host + count].copy_from_slice(&self.card[card..card + count]);
                    self.host[host + count - 1] ^= u8::from(fault == Fault::Flips);
                }
                (false, _) => self.card[card..card + count].copy_from_slice(&self.host[host..host + count]),
            }
        }
        Ok(())
    }

    fn bus_address(&mut self) -> std::io::Result<u64> {
        Ok(BUS)
    }

    fn put(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.host[..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn take(&mut self, data: &mut [u8]) -> std::io::Result<()> {
        let bytes = data.len();
        data.copy_from_slice(&self.host[..bytes]);
        Ok(())
    }
}

/// A clock that advances by a second at each call.
struct Jumping(std::sync::atomic::AtomicU64);

impl Clock for Jumping {
    fn now_ns(&self) -> u64 {
        self.0.fetch_add(1_000_000_000, std::sync::atomic::Ordering::Relaxed)
    }

    fn unix_ns(&self) -> u64 {
        0
    }

    fn sleep_until_ns(&self, _deadline_ns: u64) {}
}

fn card(fault: Fault, transfer_max: u64, may_fill: bool) -> Dma<SimulatedCard> {
    let profile = TargetProfile::find("edu").unwrap().dma.unwrap();
    let profile = DmaProfile { transfer_max, may_fill, ..profile };
    let card = (0..4092u32).map(|at| (at / 4 * 7) as u8).collect();
    let hardware = SimulatedCard {
        registers: BTreeMap::new(),
        card,
        host: vec![0; 4096],
        fault,
        busy: 0,
        transfers: Vec::new(),
    };
    match fault {
        Fault::Endless => Dma::new(profile, hardware, Arc::new(Jumping(0.into()))),
        _ => Dma::new(profile, hardware, Arc::new(SystemClock)),
    }
}

fn span(offset: u64, count: u64) -> Span {
    Span { offset, count, width: Width::Bits32, is_fifo: false }
}

#[test]
fn the_cards_memory_is_read_in_parts() {
    let mut method = card(Fault::None, 64, false);
    let mut values = Vec::new();
    method.values(&span(8, 40), &mut values).unwrap();
    let expected: Vec<u64> = (2..42).map(|word: u64| ((word * 7) & 0xff) * 0x0101_0101).collect();
    assert_eq!(values, expected);
    let moved = [(0x40008, BUS, 64), (0x40048, BUS + 64, 64), (0x40088, BUS + 128, 32)];
    assert_eq!(method.hardware.transfers, moved);
    assert_eq!((method.words_max(Width::Bits32), method.words_max(Width::Bits64)), (Some(16), Some(8)));
    assert!(!method.has_registers() && method.bytes() == 4092);
    for (wrong, words) in [
        (Span { is_fifo: true, ..span(0, 2) }, "not a FIFO"),
        (span(0, 1024), "beyond its 4092 bytes"),
        (Span { width: Width::Bits16, ..span(0, 3) }, "multiples of 4 bytes"),
        (Span { width: Width::Bits16, ..span(2, 2) }, "multiples of 4 bytes"),
    ] {
        assert!(method.read(&wrong).unwrap_err().to_string().contains(words), "{wrong:?}");
    }
    assert_eq!(method.hardware.transfers.len(), 3, "a refused read moves nothing");
}

#[test]
fn a_card_that_may_be_filled_is_checked_once_in_both_directions() {
    let mut method = card(Fault::None, 4092, true);
    let mut values = Vec::new();
    method.values(&span(0, 1023), &mut values).unwrap();
    let mut written = vec![0; 4092];
    fastrand::Rng::with_seed(4092).fill(&mut written);
    assert_eq!(method.hardware.card, written);
    let words = written.chunks_exact(4).map(|word| u64::from(u32::from_le_bytes(word.try_into().unwrap())));
    assert!(words.eq(values.iter().copied()));
    method.read(&span(0, 1)).unwrap();
    let moved = [(BUS, 0x40000, 4092), (0x40000, BUS, 4092), (0x40000, BUS, 4092), (0x40000, BUS, 4)];
    assert_eq!(method.hardware.transfers, moved);
}

#[test]
fn a_faulty_card_is_reported() {
    for (fault, words) in [
        (Fault::Flips, "byte 4091 of 4092"),
        (Fault::Idle, "byte 0 of 4092"),
        (Fault::Gone, "as all ones"),
        (Fault::Endless, "not complete after 10 s"),
    ] {
        let why = card(fault, 4092, true).read(&span(0, 4)).unwrap_err().to_string();
        assert!(why.contains(words), "{fault:?}: {why}");
    }
}
