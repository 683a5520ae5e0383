//! One end of a test: its flows, measurement window and report. Client and server share this code.
//!
//! The owner calls [`LocalEnd::tick`] when it is due. Only [`LocalEnd::stop_sending`] and
//! [`LocalEnd::finish`] wait, for a bounded time.
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_measure::net::NetCounters;
use keepup_measure::sum::Sums;
use keepup_results::{NetEnd, NetInterface, NetMoved};

use super::flow::{Flow, FlowContext, Shared};
use super::path::interfaces;
use super::spec::{NetSpec, Role};
use super::wire::{Counted, FlowReport, Report, Sent};
use crate::WorkloadError;
use crate::error::system;
use crate::spent::{Spent, SpentClock};

/// Resolution of the throughput series in a window.
const TENTH: Duration = Duration::from_millis(100);
/// Time for which senders continue after their window, so that the peer's window is covered to its
/// end.
pub(super) const TAIL: Duration = Duration::from_millis(100);
/// Time for receivers to finish after the peer stopped sending.
const END_MAX: Duration = Duration::from_secs(2);

/// Bytes and messages of one flow at one moment.
type Mark = (u64, u64);

struct Running {
    number: u32,
    role: Role,
    sends: bool,
    receives: bool,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<FlowReport>>,
    report: Option<FlowReport>,
    first: Mark,
    last: Mark,
    tenths: Vec<u64>,
}

/// One end of a test.
pub(super) struct LocalEnd {
    spec: NetSpec,
    clock: Arc<dyn Clock>,
    waiting: Vec<Flow>,
    flows: Vec<Running>,
    counters: Option<NetCounters>,
    interfaces: Vec<NetInterface>,
    begin_ns: u64,
    /// Start of the window and time of the last mark.
    window_ns: Option<(u64, u64)>,
    tenths: u64,
    spent_clock: Option<SpentClock>,
    spent: Option<Spent>,
}

impl LocalEnd {
    /// Prepares all sockets.
    pub(super) fn new(
        flows: Vec<Flow>,
        spec: &NetSpec,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, WorkloadError> {
        for flow in &flows {
            flow.prepare(spec).map_err(system("set the socket options"))?;
        }
        Ok(Self {
            spec: spec.clone(),
            clock,
            interfaces: interfaces(flows.iter().filter_map(Flow::peer)),
            waiting: flows,
            flows: Vec::new(),
            counters: NetCounters::read(Path::new("/")).ok(),
            begin_ns: 0,
            window_ns: None,
            tenths: 0,
            spent_clock: None,
            spent: None,
        })
    }

    /// Starts one thread per flow.
    pub(super) fn start(&mut self) -> Result<(), WorkloadError> {
        self.begin_ns = self.clock.now_ns();
        for flow in std::mem::take(&mut self.waiting) {
            let (number, role, sends, receives) = (flow.number, flow.role, flow.sends(), flow.receives());
            let shared = Arc::new(Shared::default());
            let flow_context = FlowContext {
                spec: self.spec.clone(),
                clock: Arc::clone(&self.clock),
                shared: Arc::clone(&shared),
            };
            let thread = std::thread::Builder::new()
                .name(format!("ku-net-{number}"))
                .spawn(move || flow.run(&flow_context))
                .map_err(system("start a thread for a flow"))?;
            let (report, first, last, tenths) = (None, (0, 0), (0, 0), Vec::new());
            let thread = Some(thread);
            self.flows.push(Running {
                number,
                role,
                sends,
                receives,
                shared,
                thread,
                report,
                first,
                last,
                tenths,
            });
        }
        Ok(())
    }

    /// Time of the next tick, or none when the window is over.
    pub(super) fn next_ns(&self) -> Option<u64> {
        if self.spent.is_some() {
            return None;
        }
        let ramp_ns = self.spec.ramp.as_nanos() as u64;
        let passed_ns = match self.window_ns {
            None => 0,
            Some(_) => ((self.tenths + 1) * TENTH.as_nanos() as u64).min(self.spec.run.as_nanos() as u64),
        };
        Some(self.begin_ns + ramp_ns + passed_ns)
    }

    /// Starts the window, records progress, or ends the window, as due.
    pub(super) fn tick(&mut self) {
        let now_ns = self.clock.now_ns();
        if self.next_ns().is_none_or(|next_ns| now_ns < next_ns) {
            return;
        }
        match self.window_ns {
            None => self.begin_window(now_ns),
            Some((begin_ns, _)) => {
                let run_ns = self.spec.run.as_nanos() as u64;
                let scheduled_ns = self.begin_ns + self.spec.ramp.as_nanos() as u64;
                let passed_ns = now_ns.saturating_sub(scheduled_ns);
                let tenth_ns = TENTH.as_nanos() as u64;
                self.mark(match passed_ns < run_ns {
                    true => passed_ns / tenth_ns,
                    false => run_ns.div_ceil(tenth_ns),
                });
                self.window_ns = Some((begin_ns, now_ns));
                if passed_ns >= run_ns {
                    self.end_window(now_ns);
                }
            }
        }
    }

    /// Starts the window; a late start does not shorten it.
    fn begin_window(&mut self, now_ns: u64) {
        self.begin_ns = now_ns.saturating_sub(self.spec.ramp.as_nanos() as u64);
        for flow in &mut self.flows {
            flow.first = mark(&flow.shared);
            flow.last = flow.first;
            flow.shared.window_begin_ns.store(now_ns, Ordering::Relaxed);
        }
        self.window_ns = Some((now_ns, now_ns));
        self.spent_clock = Some(SpentClock::begin(self.clock.as_ref()));
    }

    /// Distributes the progress since the last mark over the tenths up to `tenths`; tenths in which
    /// the thread slept get equal shares.
    fn mark(&mut self, tenths: u64) {
        let new = tenths.saturating_sub(self.tenths).max(1);
        for flow in &mut self.flows {
            let now = mark(&flow.shared);
            let bytes = now.0 - flow.last.0;
            flow.tenths.extend((0..new).map(|part| bytes * (part + 1) / new - bytes * part / new));
            flow.last = now;
        }
        self.tenths += new;
    }

    fn end_window(&mut self, now_ns: u64) {
        for flow in &self.flows {
            flow.shared.window_end_ns.store(now_ns, Ordering::Relaxed);
        }
        self.spent = self.spent_clock.as_ref().map(|clock| clock.end(self.clock.as_ref()));
    }

    /// Ends the window early; if none has started nothing is counted.
    pub(super) fn cut_short(&mut self) {
        let now_ns = self.clock.now_ns();
        if let (Some((begin_ns, _)), None) = (self.window_ns, self.spent) {
            self.mark(self.tenths + 1);
            self.window_ns = Some((begin_ns, now_ns));
            self.end_window(now_ns);
        }
    }

    /// Bytes received since the start, inside the window or not.
    pub(super) fn received_bytes(&self) -> u64 {
        self.flows.iter().filter(|flow| flow.receives).map(|flow| mark(&flow.shared).0).saturating_sum()
    }

    /// First flow that ended prematurely, with the reason.
    pub(super) fn broken(&mut self) -> Option<(u32, String)> {
        for flow in &mut self.flows {
            let has_ended = flow.thread.as_ref().is_some_and(JoinHandle::is_finished);
            if has_ended && (flow.sends || flow.role == Role::Probe) {
                flow.join();
                let failure = flow.report.as_ref().and_then(|report| report.failure.clone());
                if let Some(failure) = failure {
                    return Some((flow.number, failure));
                }
            }
        }
        None
    }

    /// Stops all senders; returns the totals of the datagram flows.
    pub(super) fn stop_sending(&mut self) -> Vec<Sent> {
        for flow in &self.flows {
            flow.shared.stop_sending.store(true, Ordering::Relaxed);
        }
        let mut sent = Vec::new();
        for flow in self.flows.iter_mut().filter(|flow| flow.sends) {
            flow.join();
            sent.extend(flow.report.as_ref().and_then(|report| report.sent));
        }
        sent
    }

    /// Stops the receivers once they are done and returns this end's report. The peer must have
    /// stopped sending.
    pub(super) fn finish(mut self, name: String, sessions: u32) -> Report {
        self.cut_short();
        for flow in &self.flows {
            flow.shared.sender_finished.store(true, Ordering::Relaxed);
        }
        let give_up_ns = self.clock.now_ns() + END_MAX.as_nanos() as u64;
        while self.flows.iter().any(Running::is_running) && self.clock.now_ns() < give_up_ns {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.abandon();
        let counters = self.counters.take().and_then(|before| {
            NetCounters::read(Path::new("/")).ok().map(|after| counted(&after.since(&before)))
        });
        let seconds = self.window_ns.map_or(0.0, |(begin_ns, end_ns)| (end_ns - begin_ns) as f64 / 1e9);
        let spent = self.spent.unwrap_or_default();
        let flows = std::mem::take(&mut self.flows);
        Report {
            flows: flows.into_iter().filter_map(|flow| flow.into_report(seconds)).collect(),
            end: NetEnd {
                name,
                seconds,
                cpu_seconds: spent.cpu_seconds,
                sessions,
                machine_cpu_seconds: spent.machine_cpu_seconds,
                softirq_seconds: spent.softirq_seconds,
                steal_seconds: spent.steal_seconds,
                cores: spent.cores,
                host: host(),
                interfaces: std::mem::take(&mut self.interfaces),
            },
            counters,
        }
    }

    /// Stops all threads immediately.
    fn abandon(&mut self) {
        for flow in &self.flows {
            flow.shared.abandon.store(true, Ordering::Relaxed);
        }
        self.flows.iter_mut().for_each(Running::join);
    }
}

impl Drop for LocalEnd {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Running {
    fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    fn join(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let failure = Some("the thread of the flow panicked".to_owned());
        let died = |_| FlowReport { number: self.number, failure, ..FlowReport::default() };
        self.report = Some(thread.join().unwrap_or_else(died));
    }

    fn into_report(self, seconds: f64) -> Option<FlowReport> {
        let moved = (self.sends || self.receives).then_some(NetMoved {
            bytes: self.last.0 - self.first.0,
            messages: self.last.1 - self.first.1,
            seconds,
            tenths: self.tenths,
        });
        self.report.map(|report| FlowReport { moved, ..report })
    }
}

fn mark(shared: &Shared) -> Mark {
    (shared.bytes.load(Ordering::Relaxed), shared.messages.load(Ordering::Relaxed))
}

/// Kernel counters that may explain losses, summed over the interfaces.
fn counted(grown: &NetCounters) -> Counted {
    let interfaces = grown.interfaces.values();
    Counted {
        interface_dropped_out: interfaces.clone().map(|i| i.send_dropped + i.send_errors).saturating_sum(),
        interface_dropped_in: interfaces
            .map(|i| i.receive_dropped + i.receive_overruns + i.receive_errors)
            .saturating_sum(),
        softirq_dropped: grown.softnet.dropped,
        reassembly_failed: grown.protocols.ip_reassembly_failed,
        buffer_full: grown.protocols.udp_receive_buffer_errors,
    }
}

/// Host name.
pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
