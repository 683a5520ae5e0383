//! Registers of a board behind IPbus, or of a target of keepup's own: a packet for each, a transaction for
//! each, or blocks.
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use keepup_measure::clock::SystemClock;
use keepup_peer::Endpoint;
use keepup_sys::register::{Span, Width};

use super::{Method, RegisterError, Target};
use crate::ipbus::{ClientOptions, IpbusClient, IpbusTarget, PORT, TargetOptions};

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

/// A target that is served for as long as anyone reads it.
struct Served {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// Serves a target at a free port of loopback; also where.
    fn begin() -> Result<(Self, Endpoint), RegisterError> {
        let target = IpbusTarget::bind(&TargetOptions::default(), Arc::new(SystemClock))?;
        let endpoint = target.address().into();
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let serve = move || {
            // A target that fails falls silent, which its client tells.
            target.serve(&until).ok();
        };
        let thread = std::thread::Builder::new().name("ku-ipbus".into()).spawn(serve).map_err(|source| {
            RegisterError::Access { target: "ipbus:self".into(), method: "its thread".into(), source }
        })?;
        Ok((Self { stop, thread: Some(thread) }, endpoint))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread.take().map(JoinHandle::join);
    }
}

/// One way of using a client that all ways share.
struct Packets {
    _served: Option<Rc<Served>>,
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
    let endpoint = Endpoint::with_default_port(address, PORT).map_err(|why| RegisterError::Access {
        target: target.to_string(),
        method: "its address".into(),
        source: std::io::Error::other(why),
    })?;
    ways(&endpoint, None)
}

/// All ways of reading a target of this process's own.
pub(super) fn own() -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let (served, endpoint) = Served::begin()?;
    ways(&endpoint, Some(Rc::new(served)))
}

fn ways(endpoint: &Endpoint, served: Option<Rc<Served>>) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let connect = |target| IpbusClient::connect(target, ClientOptions::default(), Arc::new(SystemClock));
    let client = endpoint.try_each(connect)?;
    let client = Rc::new(RefCell::new(client));
    let way = |by| -> Box<dyn Method> {
        let (client, served) = (Rc::clone(&client), served.clone());
        Box::new(Packets { client, by, words: Vec::new(), _served: served })
    };
    Ok([By::Single, By::Each, By::Block].map(way).into())
}
