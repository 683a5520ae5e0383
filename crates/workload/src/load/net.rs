//! Loopback load: a sender and a receiver over loopback; received bytes count.
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use super::pace::Pacer;
use super::{LOOK, LoadGenerator, LoadRun};
use crate::{Context, WorkloadError};

/// Target duration of a send; its size is bounded by the next constants.
const PIECE_SECONDS: f64 = 0.002;
const PIECE_BYTES: (f64, f64) = (1024.0, 1_048_576.0);
/// Receive buffer size.
const RECEIVE_BYTES: usize = 256 << 10;

/// State of a loopback load.
pub(super) struct Loopback {
    rate: f64,
    ends: Option<(TcpStream, TcpStream)>,
}

fn system(action: &str) -> impl Fn(std::io::Error) -> WorkloadError {
    move |source| WorkloadError::System { action: format!("{action} over loopback"), source }
}

impl Loopback {
    /// A load of `rate` bytes per second.
    pub(super) fn new(rate: f64) -> Self {
        Self { rate, ends: None }
    }
}

impl LoadGenerator for Loopback {
    fn prepare(&mut self, _name: &str, _context: &mut Context) -> Result<Vec<String>, WorkloadError> {
        let fail = system("connect");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(&fail)?;
        let sender = TcpStream::connect(listener.local_addr().map_err(&fail)?).map_err(&fail)?;
        let (receiver, _) = listener.accept().map_err(&fail)?;
        for end in [&sender, &receiver] {
            end.set_nodelay(true)
                .and_then(|()| end.set_write_timeout(Some(LOOK)))
                .and_then(|()| end.set_read_timeout(Some(LOOK)))
                .map_err(&fail)?;
        }
        self.ends = Some((sender, receiver));
        Ok(vec!["over loopback: no network card took part".to_owned()])
    }

    fn run(&mut self, run: &LoadRun<'_>) -> Result<(), WorkloadError> {
        let Some((sender, receiver)) = self.ends.take() else { return Ok(()) };
        let rate = self.rate;
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| receive(receiver, run));
            let sent = send(sender, rate, run);
            let received = receiving.join().unwrap_or(Err(WorkloadError::Thread { name: "receiver" }));
            sent.and(received)
        })
    }
}

/// Sends until stopped; the connection is closed at the end.
fn send(mut to: TcpStream, rate: f64, run: &LoadRun<'_>) -> Result<(), WorkloadError> {
    let bytes = (rate * PIECE_SECONDS).clamp(PIECE_BYTES.0, PIECE_BYTES.1) as usize;
    let piece = vec![0x5a_u8; bytes];
    let mut pacer = Pacer::new(bytes as f64, rate, run.begin_ns);
    while run.wait(pacer.due_ns()) {
        pacer.begin(run.clock.now_ns());
        let mut left = &piece[..];
        while !left.is_empty() && !run.is_over() {
            match to.write(left) {
                Ok(sent) => left = &left[sent..],
                Err(e) if is_pause(&e) => {}
                Err(e) => return Err(system("send")(e)),
            }
        }
    }
    Ok(())
}

fn receive(mut from: TcpStream, run: &LoadRun<'_>) -> Result<(), WorkloadError> {
    let mut buffer = vec![0; RECEIVE_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(bytes) => run.add(bytes as u64),
            Err(e) if is_pause(&e) => {}
            Err(e) => return Err(system("receive")(e)),
        }
    }
}

/// Whether the error is a timeout or an interruption by a signal.
fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
