//! Registers of an IPbus board or of a simulated target: one packet per register, one transaction per
//! register, or blocks.
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

/// Bytes of a word, the unit of IPbus addresses.
const WORD_BYTES: u64 = 4;
/// Size of the address space, bytes.
const BYTES: u64 = WORD_BYTES << 32;

#[derive(Clone, Copy)]
enum Kind {
    /// One packet per register, sent after the reply to the previous one.
    Single,
    /// One transaction per register, many in a packet.
    Packed,
    /// Transactions of maximum length.
    Block,
}

/// Thread of a simulated target, stopped on drop.
struct SimulatorThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SimulatorThread {
    /// Starts a target on a free loopback port. Returns its address too.
    fn start() -> Result<(Self, Endpoint), RegisterError> {
        let target = IpbusTarget::bind(&TargetOptions::default(), Arc::new(SystemClock))?;
        let endpoint = target.address().into();
        let stop = Arc::new(AtomicBool::new(false));
        let thread_stop = Arc::clone(&stop);
        let serve = move || {
            // If the target fails, the client reports that it does not answer.
            target.serve(&thread_stop).ok();
        };
        let thread = std::thread::Builder::new().name("ku-ipbus".into()).spawn(serve).map_err(|source| {
            RegisterError::Access { target: "ipbus:self".into(), method: "a new thread".into(), source }
        })?;
        Ok((Self { stop, thread: Some(thread) }, endpoint))
    }
}

impl Drop for SimulatorThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread.take().map(JoinHandle::join);
    }
}

/// An access method. All methods share the client.
struct Packets {
    _simulator: Option<Rc<SimulatorThread>>,
    client: Rc<RefCell<IpbusClient>>,
    kind: Kind,
    words: Vec<u32>,
}

impl Packets {
    fn words(&mut self, span: &Span) -> std::io::Result<()> {
        let wrong = |what: &str| Err(std::io::Error::other(what.to_owned()));
        if span.width != Width::Bits32 {
            return wrong("IPbus supports only words of 32 bits: --width 32");
        }
        span.check(BYTES).map_err(std::io::Error::other)?;
        let (Ok(address), Ok(count)) = (u32::try_from(span.offset / WORD_BYTES), usize::try_from(span.count))
        else {
            return wrong("beyond the address space of IPbus");
        };
        self.words.resize(count, 0);
        let (client, words) = (&mut self.client.borrow_mut(), &mut self.words[..]);
        match self.kind {
            Kind::Single => words.iter_mut().zip(0..).try_for_each(|(word, index)| {
                let step = if span.is_fifo { 0 } else { index };
                *word = client.read_single(address.wrapping_add(step))?;
                Ok(())
            }),
            Kind::Packed => client.read_each(address, words, span.is_fifo),
            Kind::Block => client.read_block(address, words, span.is_fifo),
        }
        .map_err(std::io::Error::other)
    }
}

impl Method for Packets {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Single => "single",
            Kind::Packed => "packed",
            Kind::Block => "block",
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

/// All methods of a board.
pub(super) fn board(target: &Target, address: &str) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let endpoint = Endpoint::with_default_port(address, PORT).map_err(|why| RegisterError::Access {
        target: target.to_string(),
        method: "IPbus".into(),
        source: std::io::Error::other(why),
    })?;
    methods(&endpoint, None)
}

/// All methods of a simulated target within this process.
pub(super) fn simulated() -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let (simulator, endpoint) = SimulatorThread::start()?;
    methods(&endpoint, Some(Rc::new(simulator)))
}

fn methods(
    endpoint: &Endpoint,
    simulator: Option<Rc<SimulatorThread>>,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let connect = |target| IpbusClient::connect(target, ClientOptions::default(), Arc::new(SystemClock));
    let client = endpoint.try_each(connect)?;
    let client = Rc::new(RefCell::new(client));
    let method = |kind| -> Box<dyn Method> {
        let (client, simulator) = (Rc::clone(&client), simulator.clone());
        Box::new(Packets { client, kind, words: Vec::new(), _simulator: simulator })
    };
    Ok([Kind::Single, Kind::Packed, Kind::Block].map(method).into())
}
