//! Network load from another machine: a server sends, received bytes count.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{LOOK, LoadGenerator, LoadRun};
use crate::net::{Direction, NetServer, NetSpec, NetTest};
use crate::{Context, Workload, WorkloadError};

/// Target duration of a send; its size is bounded by the next constants.
const PIECE_SECONDS: f64 = 0.002;
const PIECE_BYTES: (f64, f64) = (1024.0, 131_072.0);
/// Duration requested from the server, its maximum; the load ends with this process.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// State of a remote load.
pub(super) struct Remote {
    test: NetTest,
    server: String,
    received: Arc<AtomicU64>,
    context: Option<Context>,
}

impl Remote {
    /// A load of `rate` bytes per second.
    ///
    /// # Errors
    /// An address that is not a single machine.
    pub(super) fn new(rate: f64, server: NetServer) -> Result<Self, WorkloadError> {
        let spec = NetSpec {
            direction: Direction::Receive,
            message_bytes: (rate * PIECE_SECONDS).clamp(PIECE_BYTES.0, PIECE_BYTES.1) as usize,
            no_delay: true,
            rate: Some(rate),
            ramp: Duration::ZERO,
            run: LONGEST,
            ..NetSpec::default()
        };
        let (name, received) = (server.endpoint.to_string(), Arc::new(AtomicU64::new(0)));
        let test = NetTest::new(spec, vec![server], "load".into())?.with_live_bytes(Arc::clone(&received));
        Ok(Self { test, server: name, received, context: None })
    }
}

impl LoadGenerator for Remote {
    fn prepare(&mut self, _name: &str, context: &mut Context) -> Result<Vec<String>, WorkloadError> {
        let mut own = Context {
            clock: Arc::clone(&context.clock),
            stop: Arc::clone(&context.stop),
            sample: Box::new(|_, _| {}),
            note: Box::new(|_| {}),
        };
        self.test.prepare(&mut own)?;
        self.context = Some(own);
        Ok(vec![format!("sent by {}", self.server)])
    }

    fn run(&mut self, run: &LoadRun<'_>) -> Result<(), WorkloadError> {
        let Some(mut context) = self.context.take() else { return Ok(()) };
        let (test, received) = (&mut self.test, &self.received);
        std::thread::scope(|scope| {
            let working = scope.spawn(move || {
                test.measure(&mut context)?;
                test.drain(&mut context)?;
                test.measured()?.failure.map_or(Ok(()), Err)
            });
            let mut counted = 0;
            while !working.is_finished() {
                let now = received.load(Ordering::Relaxed);
                run.add(now - counted);
                counted = now;
                run.clock.sleep_until_ns(run.clock.now_ns() + LOOK.as_nanos() as u64 / 5);
            }
            working.join().unwrap_or(Err(WorkloadError::Thread { name: "receiver" }))
        })
    }

    fn clean_up(&mut self) {
        // Closes connections, which cannot fail.
        drop(self.test.clean_up());
    }
}
