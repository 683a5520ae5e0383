//! Stores to one mapped register: what issuing them costs, and what it costs until they have arrived.
//!
//! Invariant: only a register that the target's profile lets be written is ever given to it.
use std::rc::Rc;

use keepup_sys::register::{RegisterMap, Span, Width};

use super::{Method, answer};

/// A register and what is written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// Where, bytes.
    pub offset: u64,
    /// What.
    pub value: u64,
}

/// Stores of one value to one register, which is as deep as one likes.
pub(super) struct Stores {
    map: Rc<RegisterMap>,
    /// Where in the mapping.
    place: u64,
    width: Width,
    value: u64,
    /// Whether each is followed by a load from the same register, which on PCI pushes it there first.
    reads_back: bool,
}

impl Stores {
    /// Both ways: stores by themselves, and each read back.
    pub(super) fn both(map: &Rc<RegisterMap>, place: u64, width: Width, value: u64) -> [Self; 2] {
        [false, true].map(|reads_back| Self { map: Rc::clone(map), place, width, value, reads_back })
    }
}

impl Method for Stores {
    fn name(&self) -> &'static str {
        if self.reads_back { "write+read" } else { "write" }
    }

    fn bytes(&self) -> u64 {
        u64::MAX
    }

    fn has_registers(&self) -> bool {
        false
    }

    fn is_write(&self) -> bool {
        true
    }

    fn read(&mut self, span: &Span) -> std::io::Result<()> {
        self.repeat(span, 1)
    }

    fn repeat(&mut self, span: &Span, times: u64) -> std::io::Result<()> {
        let times = times.saturating_mul(span.count);
        self.map.write_again(self.place, self.width, self.value, times, self.reads_back).map_err(answer)
    }

    fn values(&mut self, _span: &Span, values: &mut Vec<u64>) -> std::io::Result<()> {
        values.clear();
        values.push(self.value);
        Ok(())
    }
}
