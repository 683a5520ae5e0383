//! Registers of a board behind IPbus: a packet for each, a transaction for each, or blocks.
use std::cell::RefCell;
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;

use keepup_measure::clock::SystemClock;
use keepup_sys::register::{Span, Width};

use super::{Method, RegisterError, Target};
use crate::register::ipbus::{ClientOptions, IpbusClient, PORT};

/// Bytes of a word, by which IPbus counts addresses.
const WORD_BYTES: u64 = 4;
/// All that can be addressed.
const BYTES: u64 = WORD_BYTES << 32;

#[derive(Clone, Copy)]
enum By {
    /// One packet for each register, and its answer before the next.
    Single,
    /// One transaction for each register, as many in a packet as have room.
    Each,
    /// The longest transactions there are.
    Block,
}

/// One way of using a client that all ways share.
struct Packets {
    client: Rc<RefCell<IpbusClient>>,
    by: By,
    words: Vec<u32>,
}

impl Packets {
    fn words(&mut self, span: &Span) -> std::io::Result<()> {
        let wrong = |what: &str| Err(std::io::Error::other(what.to_owned()));
        if span.width != Width::Bits32 {
            return wrong("IPbus knows words of 32 bits alone: --width 32");
        }
        span.check(BYTES).map_err(std::io::Error::other)?;
        let (Ok(address), Ok(count)) = (u32::try_from(span.offset / WORD_BYTES), usize::try_from(span.count))
        else {
            return wrong("beyond the addresses of IPbus");
        };
        self.words.resize(count, 0);
        let (client, words) = (&mut self.client.borrow_mut(), &mut self.words[..]);
        match self.by {
            By::Single => words.iter_mut().zip(0..).try_for_each(|(word, index)| {
                let step = if span.is_fifo { 0 } else { index };
                *word = client.read_single(address.wrapping_add(step))?;
                Ok(())
            }),
            By::Each => client.read_each(address, words, span.is_fifo),
            By::Block => client.read_block(address, words, span.is_fifo),
        }
        .map_err(std::io::Error::other)
    }
}

impl Method for Packets {
    fn name(&self) -> &'static str {
        match self.by {
            By::Single => "single",
            By::Each => "packed",
            By::Block => "block",
        }
    }

    fn bytes(&self) -> u64 {
        BYTES
    }

    fn read(&mut self, span: &Span) -> std::io::Result<()> {
        self.words(span)
    }

    fn values(&mut self, span: &Span, values: &mut Vec<u64>) -> std::io::Result<()> {
        self.words(span)?;
        values.clear();
        values.extend(self.words.iter().map(|word| u64::from(*word)));
        Ok(())
    }
}

/// All ways of reading a board.
pub(super) fn board(target: &Target, address: &str) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let address = find(address).map_err(|source| RegisterError::Access {
        target: target.to_string(),
        method: "its address".into(),
        source,
    })?;
    let client = IpbusClient::connect(address, ClientOptions::default(), Arc::new(SystemClock))?;
    let client = Rc::new(RefCell::new(client));
    let way =
        |by| -> Box<dyn Method> { Box::new(Packets { client: Rc::clone(&client), by, words: Vec::new() }) };
    Ok([By::Single, By::Each, By::Block].map(way).into())
}

/// The board that people mean; without a port the usual one.
fn find(name: &str) -> std::io::Result<SocketAddr> {
    if let Ok(ip) = name.trim_start_matches('[').trim_end_matches(']').parse() {
        return Ok(SocketAddr::new(ip, PORT));
    }
    let with_port = if name.contains(':') { name.to_owned() } else { format!("{name}:{PORT}") };
    let found = with_port.to_socket_addrs()?.next();
    found.ok_or_else(|| std::io::Error::other("the name stands for no address"))
}
