//! Stores to one mapped register: the cost of issuing them, and the cost until they have arrived.
//!
//! Invariant: callers pass only registers that the target's profile lists as writable.
use std::rc::Rc;

use keepup_sys::register::{RegisterMap, Span, Width};

use super::{Method, into_io_error};

/// A value and the register that it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterWrite {
    /// Offset, bytes.
    pub offset: u64,
    /// Value.
    pub value: u64,
}

/// Stores of one value to one register, at any depth.
pub(super) struct Stores {
    map: Rc<RegisterMap>,
    /// Offset in the mapping.
    offset: u64,
    width: Width,
    value: u64,
    /// Whether a load from the same register follows each store. On PCI a store is posted, and the load
    /// waits for its arrival.
    reads_back: bool,
}

impl Stores {
    /// Both methods: plain stores, and stores that are each read back.
    pub(super) fn both(map: &Rc<RegisterMap>, offset: u64, width: Width, value: u64) -> [Self; 2] {
        [false, true].map(|reads_back| Self { map: Rc::clone(map), offset, width, value, reads_back })
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
        self.map
            .write_again(self.offset, self.width, self.value, times, self.reads_back)
            .map_err(into_io_error)
    }

    fn values(&mut self, _span: &Span, values: &mut Vec<u64>) -> std::io::Result<()> {
        values.clear();
        values.push(self.value);
        Ok(())
    }
}
