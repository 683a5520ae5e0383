//! Source ceiling: the generator used in trials, sending at full rate to a minimal receiver, so
//! that a trial limited by its generator is recognized.
use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keepup_recording::id::Id;
use keepup_stream::source::{
    Destination, Door, Protocol, Rate, SourceCounters, SourceError, SourcePlan, run, subscription,
};
use keepup_stream::wire::{
    Control, ControlMessage, HEADER_BYTES, Limits, MAX_CONTROL_BYTES, MAX_STREAMS, Next, Session, Welcome,
    WelcomeStream,
};
use keepup_stream::zmtp;
use keepup_sys::datagram::{BATCH_MAX, Batch, DATAGRAM_BYTES_MAX, DatagramReceiver, set_join};

use super::{discard, join, loopback};
use crate::error::system;
use crate::file_store::{FileStore, TrialFolder};
use crate::{Context, Footprint, Workload, WorkloadError};

/// Longest wait of the source for its receiver.
const RECEIVER_PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for a packet.
const PATIENCE: Duration = Duration::from_millis(50);

/// Closed-loop source with a discarding receiver.
#[derive(Debug)]
pub struct SourceCeiling {
    plan: SourcePlan,
    time: Duration,
    /// Place of the files of a source that writes files.
    store: Option<FileStore>,
    bytes_per_second: f64,
}

impl SourceCeiling {
    /// Sends events according to `plan` for `time`, without a schedule.
    pub fn new(plan: &SourcePlan, time: Duration) -> Self {
        let plan =
            SourcePlan { rate: Rate::Max, burst: None, events: None, duration: Some(time), ..plan.clone() };
        Self { plan, time, store: None, bytes_per_second: 0.0 }
    }

    /// The same with a place for files.
    #[must_use]
    pub fn into_files(mut self, store: FileStore) -> Self {
        self.store = Some(store);
        self
    }

    /// Writes files that nobody reads; returns the bytes per second.
    fn over_files(&self, context: &mut Context) -> Result<f64, WorkloadError> {
        let id = Id::random().map_err(system("read random bytes"))?;
        let folder = TrialFolder::create(self.store.as_ref(), id)?;
        let rate = self.send(folder.destination(), context, || {});
        folder.remove()?;
        rate
    }

    /// Sends over TCP to receivers that discard; returns the bytes per second.
    fn over_connections(&self, context: &mut Context) -> Result<f64, WorkloadError> {
        let (listener, address) = loopback()?;
        let connections = self.plan.connections;
        let accepted = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&accepted);
        let receivers = std::thread::spawn(move || -> std::io::Result<()> {
            let mut threads = Vec::new();
            for _ in 0..connections {
                let (stream, _) = listener.accept()?;
                let ours = stream.try_clone()?;
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(ours);
                threads.push(std::thread::spawn(move || welcome_and_discard(stream)));
            }
            for thread in threads {
                // The connection is cut at the end of the time, so its error is expected.
                drop(thread.join());
            }
            Ok(())
        });
        let rate = self.send(address, context, || {
            for stream in accepted.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                // The source may have ended by itself.
                let _ = stream.shutdown(Shutdown::Both);
            }
        })?;
        join("source receiver", receivers)?.map_err(system("receive over loopback"))?;
        Ok(rate)
    }

    /// Sends packets to a receiver that discards; returns the bytes per second.
    fn over_packets(&self, context: &mut Context) -> Result<f64, WorkloadError> {
        let failed = || system("receive over loopback");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed())?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(failed())?;
        // Before Linux 5.0, packets are received one by one.
        let _ = set_join(socket.as_fd(), true);
        let address = socket.local_addr().map_err(failed())?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let receiver = std::thread::spawn(move || {
            let mut batch = Batch::new(BATCH_MAX, DATAGRAM_BYTES_MAX + 28);
            while !over.load(Ordering::Acquire) {
                // Nothing arrives once the source has ended.
                let _ = batch.receive(socket.as_fd());
            }
        });
        let rate = self.send(address, context, || is_over.store(true, Ordering::Release));
        is_over.store(true, Ordering::Release);
        join("source receiver", receiver)?;
        rate
    }

    /// Sends images to a receiver that starts with `opening` and discards; returns the bytes per second.
    fn over_images(&self, context: &mut Context, opening: Vec<u8>) -> Result<f64, WorkloadError> {
        let failed = || system("receive over loopback");
        let door = Door::open((Ipv4Addr::LOCALHOST, 0).into(), Some(RECEIVER_PATIENCE)).map_err(failed())?;
        let mut socket = TcpStream::connect(door.address()).map_err(failed())?;
        let ours = socket.try_clone().map_err(failed())?;
        let receiver = std::thread::spawn(move || -> std::io::Result<u64> {
            socket.write_all(&opening)?;
            discard(socket)
        });
        let rate = self.send(Destination::Accept(door), context, || {
            // The source may have ended by itself.
            let _ = ours.shutdown(Shutdown::Both);
        });
        let _ = ours.shutdown(Shutdown::Both);
        // The connection is cut at the end of the time, so its error is expected.
        drop(join("source receiver", receiver)?);
        rate
    }

    /// Runs the source and calls `end` when its time is over, counted from the first event; returns the bytes
    /// per second until then. A source of compressed images prepares them before it sends.
    fn send(
        &self,
        to: impl Into<Destination>,
        context: &Context,
        end: impl Fn(),
    ) -> Result<f64, WorkloadError> {
        let to = to.into();
        let live = SourceCounters::default();
        let (plan, stop) = (self.plan.clone(), AtomicBool::new(false));
        let begin_ns = context.clock.now_ns();
        let mut limit_ns = begin_ns + (self.time + RECEIVER_PATIENCE).as_nanos() as u64;
        let (mut first, mut last) = (None, (0, begin_ns));
        std::thread::scope(|scope| -> Result<(), WorkloadError> {
            let source = scope.spawn(|| run(&plan, to, &stop, &live));
            while context.clock.now_ns() < limit_ns && !source.is_finished() {
                context.clock.sleep_until_ns(context.clock.now_ns() + 10_000_000);
                let now = (live.sent_bytes.load(Ordering::Relaxed), context.clock.now_ns());
                // The source may have ended its schedule a little earlier.
                last = if now.0 > last.0 { now } else { last };
                if first.is_none() && now.0 > 0 {
                    first = Some(now);
                    limit_ns = now.1 + self.time.as_nanos() as u64;
                }
            }
            stop.store(true, Ordering::Release);
            end();
            match source.join() {
                // No bye message is sent, so a closing connection is expected.
                Ok(Ok(_) | Err(SourceError::Broken { .. })) => Ok(()),
                Ok(Err(e)) => Err(e.into()),
                Err(_) => Err(WorkloadError::Thread { name: "source" }),
            }
        })?;
        // With a single count, only the whole time is known.
        let (sent_before, from_ns) = first.filter(|first| first.0 < last.0).unwrap_or((0, begin_ns));
        Ok((last.0 - sent_before) as f64 / ((last.1 - from_ns).max(1) as f64 / 1e9))
    }
}

/// Answers the hello message and discards the rest.
fn welcome_and_discard(mut stream: TcpStream) -> std::io::Result<u64> {
    use std::io::Read;
    let invalid = |e: String| std::io::Error::new(std::io::ErrorKind::InvalidData, e);
    let mut session = Session::new(Limits {
        max_event_bytes: u64::MAX / 2,
        max_control_bytes: MAX_CONTROL_BYTES,
        max_streams: MAX_STREAMS,
    });
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let Next::Control { length } = session.header(&header).map_err(|e| invalid(e.to_string()))? else {
        return Err(invalid("an event before hello".into()));
    };
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload)?;
    if let Control::Hello(hello) = session.control(&payload).map_err(|e| invalid(e.to_string()))? {
        let welcome = Welcome {
            recording: "none".into(),
            streams: hello
                .streams
                .iter()
                .map(|s| WelcomeStream { id: s.id, ..WelcomeStream::default() })
                .collect(),
            max_event_bytes: u64::MAX / 2,
            credit_bytes: 0,
        };
        stream.write_all(&welcome.to_frame().map_err(|e| invalid(e.to_string()))?)?;
    }
    // The end message is discarded too; the connection is cut once the counters are final.
    discard(stream)
}

impl Workload for SourceCeiling {
    type Measured = f64;
    type Error = WorkloadError;

    fn name(&self) -> &'static str {
        "source"
    }

    fn plan(&self) -> Footprint {
        Footprint { time: self.time, ..Footprint::default() }
    }

    fn prepare(&mut self, _context: &mut Context) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        self.bytes_per_second = match self.plan.protocol {
            Protocol::Keepup => self.over_connections(context)?,
            Protocol::Udp | Protocol::Vdif { .. } | Protocol::Spead => self.over_packets(context)?,
            Protocol::Dectris(_) => {
                let opening = [&zmtp::greeting()[..], &zmtp::ready("PULL")].concat();
                self.over_images(context, opening)?
            }
            Protocol::PvAccess => self.over_images(context, subscription())?,
            Protocol::Files => self.over_files(context)?,
        };
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn measured(&mut self) -> Result<f64, WorkloadError> {
        Ok(self.bytes_per_second)
    }
}
