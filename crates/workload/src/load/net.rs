//! The network: a sender and a receiver over loopback; what arrives counts.
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use super::pace::Pacer;
use super::{LOOK, Load, Shift};
use crate::{Context, WorkloadError};

/// Bytes that are sent at once: what this time brings, within these bounds.
const PIECE_SECONDS: f64 = 0.002;
const PIECE_BYTES: (f64, f64) = (1024.0, 1_048_576.0);
/// Room of the receiver.
const RECEIVE_BYTES: usize = 256 << 10;

/// The load.
pub(super) struct Loopback {
    rate: f64,
    ends: Option<(TcpStream, TcpStream)>,
}

fn system(action: &str) -> impl Fn(std::io::Error) -> WorkloadError {
    move |source| WorkloadError::System { action: format!("{action} over loopback"), source }
}

impl Loopback {
    /// `rate` in bytes per second.
    pub(super) fn new(rate: f64) -> Self {
        Self { rate, ends: None }
    }
}

impl Load for Loopback {
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

    fn run(&mut self, shift: &Shift<'_>) -> Result<(), WorkloadError> {
        let Some((sender, receiver)) = self.ends.take() else { return Ok(()) };
        let rate = self.rate;
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| receive(receiver, shift));
            let sent = send(sender, rate, shift);
            let received = receiving.join().unwrap_or(Err(WorkloadError::Thread { name: "receiver" }));
            sent.and(received)
        })
    }
}

/// Sends until it is to stop; the connection closes with it.
fn send(mut to: TcpStream, rate: f64, shift: &Shift<'_>) -> Result<(), WorkloadError> {
    let bytes = (rate * PIECE_SECONDS).clamp(PIECE_BYTES.0, PIECE_BYTES.1) as usize;
    let piece = vec![0x5a_u8; bytes];
    let mut pacer = Pacer::new(bytes as f64, rate, shift.begin_ns);
    while shift.wait(pacer.due_ns()) {
        pacer.begin(shift.clock.now_ns());
        let mut left = &piece[..];
        while !left.is_empty() && !shift.is_over() {
            match to.write(left) {
                Ok(sent) => left = &left[sent..],
                Err(e) if is_pause(&e) => {}
                Err(e) => return Err(system("send")(e)),
            }
        }
    }
    Ok(())
}

fn receive(mut from: TcpStream, shift: &Shift<'_>) -> Result<(), WorkloadError> {
    let mut room = vec![0; RECEIVE_BYTES];
    loop {
        match from.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(bytes) => shift.add(bytes as u64),
            Err(e) if is_pause(&e) => {}
            Err(e) => return Err(system("receive")(e)),
        }
    }
}

/// Nothing went through within the time limit, or a signal came.
fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
