//! What sources and recorders do with events.
//!
//! A source keeps events until they are acknowledged, sends those of a stream to its owner in order, and
//! sends again from the last acknowledged one when the owner changes or does not answer.
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::{Event, MS, Node, Part, World};
use crate::host::Done;
use crate::message::{HostId, HostState};

/// Time without progress after which a source sends again, ns.
const RESEND: u64 = 300 * MS;
/// Time without progress after which a source that ends gives up, ns.
const GIVE_UP: u64 = 7_000 * MS;
/// Time in which a drain proceeds, ns.
const DRAIN: u64 = 100 * MS;

/// Events of a stream.
#[derive(Clone, Debug)]
pub(super) struct Events {
    stream: u32,
    range: Range<u64>,
    /// The source has acknowledgements for all below it. A recorder goes on there, and not with a later one,
    /// because its acknowledgements cover all events before. Another recorder may have acknowledged some
    /// after the stream had moved.
    base: u64,
}

/// Events of several streams.
pub(super) type Batch = Vec<Events>;
/// Streams, and the end of what is durable of each.
pub(super) type Acknowledged = Vec<(u32, u64)>;

/// A stream at its source. Sequence numbers begin at 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub(super) emitted: u64,
    sent: u64,
    pub(super) acknowledged: u64,
    owner: Option<HostId>,
    /// When it last went on, ns.
    progress: u64,
}

/// A source.
#[derive(Debug)]
pub(super) struct Source {
    first: u32,
    pub(super) streams: Vec<Stream>,
    start: u64,
    progress: u64,
    is_ending: bool,
    pub(super) is_over: bool,
}

impl Source {
    pub(super) fn new(streams: Range<u32>) -> Self {
        Self {
            first: streams.start,
            streams: vec![Stream::default(); streams.len()],
            start: u64::MAX,
            progress: 0,
            is_ending: false,
            is_over: false,
        }
    }

    /// It is killed: events in its memory are lost.
    pub(super) fn crash(&mut self) {
        self.is_over = self.start != u64::MAX;
        self.start = u64::MAX;
    }

    fn is_done(&self) -> bool {
        self.streams.iter().all(|stream| stream.acknowledged == stream.emitted)
    }
}

/// A recorder.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// Next sequence number of each stream.
    next: HashMap<u32, u64>,
    /// Events in memory.
    volatile: Batch,
    is_ending: bool,
    /// Whether its recording has ended.
    has_ended: bool,
    /// Whether it ends without its drain.
    is_hurried: bool,
    /// How long its drain has taken since the end of the recording, ns.
    drained: u64,
}

impl Recorder {
    /// It is killed: what is not durable is lost.
    pub(super) fn crash(&mut self) {
        *self = Self::default();
    }
}

impl World {
    /// The part of a host begins at `at_ns` of its clock.
    pub(super) fn start_part(&mut self, host: HostId, at_ns: u64) {
        let machine = &mut self.machines[host as usize];
        let start = machine.global(at_ns).max(self.now);
        let incarnation = machine.incarnation;
        let event = match &mut machine.part {
            Part::Source(source) => {
                (source.start, source.progress) = (start, start);
                Event::Emit(host, incarnation)
            }
            Part::Recorder(_) => Event::Flush(host, incarnation),
            Part::Drain => return,
        };
        self.deal(host);
        self.at(start, event);
    }

    /// The view of a source has changed.
    pub(super) fn deal(&mut self, host: HostId) {
        let machine = &mut self.machines[host as usize];
        let (Part::Source(source), Some(own)) = (&mut machine.part, &machine.host) else { return };
        for (number, stream) in (source.first..).zip(&mut source.streams) {
            let owner = own.view().owner(number).map(|owner| owner.host);
            if owner != stream.owner {
                (stream.owner, stream.sent) = (owner, stream.acknowledged);
            }
        }
        if source.start <= self.now {
            self.pump(host);
        }
    }

    /// The part of a host is to end.
    pub(super) fn finish_part(&mut self, host: HostId, at_once: bool) {
        let now = self.now;
        let machine = &mut self.machines[host as usize];
        let incarnation = machine.incarnation;
        match &mut machine.part {
            Part::Source(source) if source.start != u64::MAX => {
                if !source.is_ending {
                    (source.is_ending, source.progress) = (true, now);
                }
            }
            Part::Recorder(recorder) if machine.host.is_some() => {
                recorder.is_hurried |= at_once;
                if !std::mem::replace(&mut recorder.is_ending, true) {
                    self.at(now + 5 * MS, Event::Flush(host, incarnation));
                }
            }
            Part::Source(_) | Part::Recorder(_) | Part::Drain => self.report_finished(host, "nothing"),
        }
    }

    /// The drain of a recorder that has ended goes on, or is over.
    pub(super) fn on_drain(&mut self, host: HostId, incarnation: u64) {
        let (now, drain_ns) = (self.now, self.scenario.drain_ns);
        let machine = &mut self.machines[host as usize];
        let Part::Recorder(recorder) = &mut machine.part else { return };
        let Some(own) = machine.host.as_mut().filter(|_| machine.incarnation == incarnation) else { return };
        if recorder.is_hurried || recorder.drained >= drain_ns {
            self.report_finished(host, "recorded");
            return;
        }
        recorder.drained += DRAIN;
        own.counters().drained_bytes += 1;
        self.at(now + DRAIN, Event::Drain(host, incarnation));
    }

    fn report_finished(&mut self, host: HostId, outcome: &str) {
        let incarnation = self.machines[host as usize].incarnation;
        let done = Done::Finished { run: super::RUN, outcome: outcome.to_owned() };
        self.at(self.now, Event::Done(host, incarnation, done));
    }

    pub(super) fn on_emit(&mut self, host: HostId, incarnation: u64) {
        let (now, emit_ns, burst_ns) = (self.now, self.scenario.emit_ns, self.scenario.burst_ns);
        let burst = self.rng.u64(1..4);
        let machine = &mut self.machines[host as usize];
        let is_alive = machine.host.is_some() && machine.incarnation == incarnation;
        let Part::Source(source) = &mut machine.part else { return };
        if !is_alive || source.is_over {
            return;
        }
        if now < source.start.saturating_add(emit_ns) && !source.is_ending {
            source.streams.iter_mut().for_each(|stream| stream.emitted += burst);
        } else if !source.is_ending {
            (source.is_ending, source.progress) = (true, now);
        }
        for stream in source.streams.iter_mut().filter(|stream| now - stream.progress >= RESEND) {
            (stream.sent, stream.progress) = (stream.acknowledged, now);
        }
        let gives_up = source.is_ending && now - source.progress >= GIVE_UP;
        if source.is_ending && (source.is_done() || gives_up) {
            source.is_over = true;
            self.report_finished(host, "sent");
            return;
        }
        self.pump(host);
        self.at(now + burst_ns, Event::Emit(host, incarnation));
    }

    /// Sends what has not been sent.
    fn pump(&mut self, host: HostId) {
        let machine = &mut self.machines[host as usize];
        let is_running = machine.host.as_ref().is_some_and(|own| {
            matches!(own.state(), HostState::Running { .. } | HostState::Finishing { .. })
        });
        let Part::Source(source) = &mut machine.part else { return };
        if !is_running || source.is_over {
            return;
        }
        let mut batches: BTreeMap<HostId, Batch> = BTreeMap::new();
        for (number, stream) in (source.first..).zip(&mut source.streams) {
            if let Some(owner) = stream.owner.filter(|_| stream.sent < stream.emitted) {
                let (range, base) = (stream.sent..stream.emitted, stream.acknowledged);
                batches.entry(owner).or_default().push(Events { stream: number, range, base });
                stream.sent = stream.emitted;
            }
        }
        for (owner, batch) in batches {
            self.send(Node::Host(host), Node::Host(owner), Event::Data(owner, batch));
        }
    }

    /// A recorder takes the events for which it is the owner, unless some before them are missing.
    pub(super) fn on_data(&mut self, host: HostId, batch: &Batch) {
        let now = self.now;
        let machine = &mut self.machines[host as usize];
        let local = machine.local(now);
        let (Part::Recorder(recorder), Some(own)) = (&mut machine.part, &machine.host) else { return };
        let mut taken = Batch::new();
        for Events { stream, range, base } in batch {
            if !own.may_take(*stream, local) {
                continue;
            }
            let next = recorder.next.entry(*stream).or_default();
            *next = (*next).max(*base);
            // Events that it has are acknowledged again.
            if range.start <= *next {
                let end = range.end.max(*next);
                taken.push(Events { stream: *stream, range: *next..end, base: *base });
                *next = end;
            }
        }
        recorder.volatile.extend(taken.iter().cloned());
        for Events { stream, .. } in &taken {
            let Some(before) = self.oracle.taken(*stream, host) else { continue };
            let other = &self.machines[before as usize];
            if other.host.as_ref().is_some_and(|own| own.may_take(*stream, other.local(now))) {
                self.oracle.broken.push(format!("stream {stream} has two owners, {before} and {host}"));
            }
        }
        if self.scenario.flaws.early_acknowledgement {
            self.acknowledge(host, taken);
        }
    }

    pub(super) fn on_flush(&mut self, host: HostId, incarnation: u64) {
        let machine = &mut self.machines[host as usize];
        let is_alive = machine.host.is_some() && machine.incarnation == incarnation;
        let Part::Recorder(recorder) = &mut machine.part else { return };
        if !is_alive {
            return;
        }
        let written = std::mem::take(&mut recorder.volatile);
        let is_ending = recorder.is_ending;
        let had_ended = std::mem::replace(&mut recorder.has_ended, is_ending);
        for Events { stream, range, .. } in &written {
            self.oracle.durable(*stream, range.start, range.end);
        }
        self.acknowledge(host, written);
        if is_ending && !had_ended {
            self.on_drain(host, incarnation);
        } else if !is_ending {
            let next = self.now + self.rng.u64(20 * MS..60 * MS);
            self.at(next, Event::Flush(host, incarnation));
        }
    }

    fn acknowledge(&mut self, host: HostId, batch: Batch) {
        let mut answers: BTreeMap<HostId, Acknowledged> = BTreeMap::new();
        for Events { stream, range, .. } in batch {
            answers.entry(self.scenario.source_of(stream)).or_default().push((stream, range.end));
        }
        for (source, answer) in answers {
            self.send(Node::Host(host), Node::Host(source), Event::Acknowledged(source, answer));
        }
    }

    pub(super) fn on_acknowledged(&mut self, host: HostId, answer: &Acknowledged) {
        let now = self.now;
        let machine = &mut self.machines[host as usize];
        let Part::Source(source) = &mut machine.part else { return };
        if machine.host.is_none() || source.is_over {
            return;
        }
        for &(number, end) in answer {
            let Some(stream) = source.streams.get_mut((number - source.first) as usize) else { continue };
            if end > stream.acknowledged {
                (stream.acknowledged, stream.progress, source.progress) = (end, now, now);
                stream.sent = stream.sent.max(end);
            }
            self.oracle.acknowledged(number, end);
        }
    }
}
