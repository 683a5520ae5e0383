//! Registers of a target: memory, and an identity register.
use super::TargetCounters;
use crate::ipbus::packet::{Info, PacketWriter, Request, TransactionHeader, TransactionKind};

/// Address of the identity register, which is read-only.
pub const IDENTITY_ADDRESS: u32 = 0x8000_0000;
/// Value of the identity register.
pub const IDENTITY: u32 = 0x6B65_6570;

/// Registers of a target.
pub(super) struct Registers {
    words: Vec<u32>,
    /// An address that always fails.
    bad: Option<u32>,
    /// Configuration space, from address 0.
    configuration: [u32; 4],
}

impl Registers {
    /// Creates `words` words of zeroed memory from address 0.
    pub(super) fn new(words: usize, bad: Option<u32>, mtu_bytes: u32, buffers: u32) -> Self {
        let configuration = [IDENTITY, words as u32, mtu_bytes, buffers];
        Self { words: vec![0; words], bad, configuration }
    }

    /// Executes a request and appends its reply. Returns whether it succeeded; after a failure, the rest
    /// of the packet must not be executed.
    pub(super) fn execute(
        &mut self,
        request: &Request<'_>,
        reply: &mut PacketWriter<'_>,
        counters: &mut TargetCounters,
    ) -> bool {
        let header = request.header;
        let position = reply.position();
        reply.transaction(TransactionHeader { info: Info::DONE, ..header });
        let wanted = usize::from(header.words);
        let (done, failure) = match header.kind {
            TransactionKind::Read | TransactionKind::ReadFifo | TransactionKind::ReadConfiguration => {
                let done = self.read(request, reply);
                counters.words_read += done as u64;
                (done, Info::READ_ERROR)
            }
            TransactionKind::Write | TransactionKind::WriteFifo => {
                let done = self.write(request);
                counters.words_written += done as u64;
                (done, Info::WRITE_ERROR)
            }
            TransactionKind::RmwBits | TransactionKind::RmwSum if wanted != 1 => (0, Info::BAD_HEADER),
            TransactionKind::RmwBits | TransactionKind::RmwSum => {
                let done = self.change(request, reply);
                counters.words_written += done as u64;
                (done, Info::READ_ERROR)
            }
        };
        counters.transactions += 1;
        if done == wanted {
            return true;
        }
        counters.failed += 1;
        let failed = TransactionHeader { words: done as u8, info: failure, ..header };
        reply.overwrite(position, failed.word());
        false
    }

    /// Accessible memory at `address`, at most `count` words.
    fn memory(&self, address: u32, count: usize) -> std::ops::Range<usize> {
        let begin = (address as usize).min(self.words.len());
        let mut end = (begin + count).min(self.words.len());
        if let Some(bad) = self.bad.map(|bad| bad as usize)
            && bad >= begin
        {
            end = end.min(bad);
        }
        begin..end
    }

    /// Value of a single readable word.
    fn word(&self, address: u32) -> Option<u32> {
        match address {
            IDENTITY_ADDRESS if self.bad != Some(address) => Some(IDENTITY),
            _ => self.words[self.memory(address, 1)].first().copied(),
        }
    }

    fn read(&self, request: &Request<'_>, reply: &mut PacketWriter<'_>) -> usize {
        let (address, count) = (request.address, usize::from(request.header.words));
        match request.header.kind {
            TransactionKind::ReadConfiguration => {
                let begin = (address as usize).min(self.configuration.len());
                let end = (begin + count).min(self.configuration.len());
                reply.words(&self.configuration[begin..end]);
                end - begin
            }
            TransactionKind::Read if address != IDENTITY_ADDRESS => {
                let range = self.memory(address, count);
                reply.words(&self.words[range.clone()]);
                range.len()
            }
            kind => {
                // A FIFO returns the same word here, and nothing follows the identity register.
                let count = if kind == TransactionKind::ReadFifo { count } else { count.min(1) };
                let Some(word) = self.word(address) else { return 0 };
                (0..count).for_each(|_| reply.word(word));
                count
            }
        }
    }

    fn write(&mut self, request: &Request<'_>) -> usize {
        let (address, count) = (request.address, usize::from(request.header.words));
        if request.header.kind == TransactionKind::Write {
            let range = self.memory(address, count);
            request.data.copy_to(&mut self.words[range.clone()]);
            return range.len();
        }
        let place = self.memory(address, 1);
        match (self.words[place].first_mut(), request.data.last()) {
            (Some(word), Some(last)) => *word = last,
            (None, Some(_)) => return 0,
            (_, None) => {}
        }
        count
    }

    fn change(&mut self, request: &Request<'_>, reply: &mut PacketWriter<'_>) -> usize {
        let place = self.memory(request.address, 1);
        let mut operands = request.data;
        let (Some(word), Some(first)) = (self.words[place].first_mut(), operands.next()) else { return 0 };
        reply.word(*word);
        *word = match operands.next() {
            Some(or) => *word & first | or,
            None => word.wrapping_add(first),
        };
        1
    }
}
