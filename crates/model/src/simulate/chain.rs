//! Simulation engine: event heap, stages and results.
//!
//! At equal times, service ends precede stalls, and stalls precede arrivals: a buffer slot freed at
//! an event's arrival time is available to it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fastrand::Rng;

use keepup_measure::sum::Sums;

use crate::engine_error::EngineError;
use crate::simulate::draw::{exponential_ps, picoseconds, seconds};
use crate::simulate::{Outcome, Pattern, Service, Simulation, Stage, StageOutcome, WhenFull};

/// Maximum number of steps.
const STEPS_MAX: u64 = 200_000_000;
/// Maximum simulated time, seconds: 115 days.
const TIME_SECONDS_MAX: u64 = 10_000_000;
const STEPS_HINT: &str = "take fewer events, or stalls further apart";

/// Kinds of steps, ordered for equal times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Served { stage: usize, server: usize },
    StallEnds { stage: usize },
    StallBegins { stage: usize },
    EventIsDue,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    due_ps: u64,
    /// Arrival time at the current stage.
    came_ps: u64,
}

#[derive(Debug, Clone, Copy)]
enum Server {
    Free,
    Busy {
        event: Event,
        until_ps: u64,
    },
    /// Finished, but blocked by a full next buffer.
    Blocked(Event),
}

struct StageState<'a> {
    stage: &'a Stage,
    service_seconds: f64,
    slots: u64,
    /// Events in the buffer or in service.
    fill: u64,
    fill_max: u64,
    queue: VecDeque<Event>,
    servers: Vec<Server>,
    free: Vec<usize>,
    blocked: VecDeque<usize>,
    is_stalled: bool,
    full_since_ps: Option<u64>,
    full_ps: u64,
    stalls: u64,
    stalled_ps: u64,
    stall_ps_max: u64,
    begun: u64,
    waited_ps: f64,
    worked_ps: f64,
    chance: Rng,
}

struct Chain<'a> {
    simulation: &'a Simulation,
    now_ps: u64,
    next: BinaryHeap<Reverse<(u64, Happens)>>,
    places: Vec<StageState<'a>>,
    chance: Rng,
    due: u64,
    sending_until_ps: u64,
    held: Option<Event>,
    held_ps: u64,
    lost: u64,
    latencies_ps: Vec<u64>,
}

/// Runs a checked simulation.
pub(super) fn run(simulation: &Simulation) -> Result<Outcome, EngineError> {
    let mut chain = Chain::new(simulation);
    let mut steps = 0u64;
    while chain.lost + (chain.latencies_ps.len() as u64) < simulation.events {
        let Some(Reverse((at_ps, what))) = chain.next.pop() else { break };
        steps += 1;
        super::too_many(steps, "steps", STEPS_MAX, STEPS_HINT)?;
        super::too_many(seconds(at_ps) as u64, "seconds", TIME_SECONDS_MAX, STEPS_HINT)?;
        chain.now_ps = at_ps;
        chain.step(what);
    }
    Ok(chain.outcome())
}

impl<'a> Chain<'a> {
    fn new(simulation: &'a Simulation) -> Self {
        // Independent random streams: changing a stage or its stalls does not affect the others.
        let mut seeds = Rng::with_seed(simulation.seed);
        let chance = seeds.fork();
        let places = simulation.stages.iter().map(|stage| {
            let chance = seeds.fork();
            StageState::new(stage, simulation.source.event_bytes, chance)
        });
        let mut chain = Self {
            simulation,
            now_ps: 0,
            next: BinaryHeap::new(),
            places: places.collect(),
            chance,
            due: 0,
            sending_until_ps: 0,
            held: None,
            held_ps: 0,
            lost: 0,
            latencies_ps: Vec::new(),
        };
        chain.at(0, Happens::EventIsDue);
        for stage in 0..chain.places.len() {
            chain.next_stall(stage);
        }
        chain
    }

    fn at(&mut self, in_ps: u64, what: Happens) {
        self.next.push(Reverse((self.now_ps + in_ps, what)));
    }

    fn step(&mut self, what: Happens) {
        match what {
            Happens::Served { stage, server } => self.served(stage, server),
            Happens::StallBegins { stage } => self.stall(stage),
            Happens::StallEnds { stage } => {
                self.places[stage].is_stalled = false;
                self.next_stall(stage);
                self.start(stage);
            }
            Happens::EventIsDue => self.event_is_due(),
        }
    }

    fn event_is_due(&mut self) {
        let event = Event { due_ps: self.now_ps, came_ps: self.now_ps };
        self.due += 1;
        if self.places[0].has_room() {
            self.enter(0, event);
        } else if self.simulation.source.when_full == WhenFull::Wait {
            self.held = Some(event);
            return;
        } else {
            self.lost += 1;
        }
        self.next_event();
    }

    /// Schedules the source's next event.
    fn next_event(&mut self) {
        let source = &self.simulation.source;
        let gap_ps = match source.pattern {
            Pattern::Regular => picoseconds(source.period_seconds),
            Pattern::Poisson => exponential_ps(source.period_seconds, &mut self.chance),
            Pattern::Bursts { events, pause_seconds } if self.due.is_multiple_of(u64::from(events)) => {
                picoseconds(pause_seconds)
            }
            Pattern::Bursts { .. } => picoseconds(source.period_seconds),
        };
        self.sending_until_ps = self.now_ps + gap_ps;
        if self.due < self.simulation.events {
            self.at(gap_ps, Happens::EventIsDue);
        }
    }

    fn enter(&mut self, stage: usize, event: Event) {
        let now_ps = self.now_ps;
        let place = &mut self.places[stage];
        place.fill += 1;
        place.fill_max = place.fill_max.max(place.fill);
        if !place.has_room() {
            place.full_since_ps = Some(now_ps);
        }
        place.queue.push_back(Event { came_ps: now_ps, ..event });
        self.start(stage);
    }

    /// Assigns events to free servers.
    fn start(&mut self, stage: usize) {
        let now_ps = self.now_ps;
        loop {
            let place = &mut self.places[stage];
            if place.is_stalled || place.queue.is_empty() {
                return;
            }
            let (Some(server), Some(event)) = (place.free.pop(), place.queue.front().copied()) else {
                return;
            };
            place.queue.pop_front();
            let in_ps = match place.stage.service {
                Service::Fixed => picoseconds(place.service_seconds),
                Service::Exponential => exponential_ps(place.service_seconds, &mut place.chance),
            };
            place.begun += 1;
            place.waited_ps += (now_ps - event.came_ps) as f64;
            place.worked_ps += in_ps as f64;
            place.servers[server] = Server::Busy { event, until_ps: now_ps + in_ps };
            self.at(in_ps, Happens::Served { stage, server });
        }
    }

    fn served(&mut self, stage: usize, server: usize) {
        let Server::Busy { event, until_ps } = self.places[stage].servers[server] else { return };
        if until_ps > self.now_ps {
            // A stall has started in between.
            self.next.push(Reverse((until_ps, Happens::Served { stage, server })));
        } else if self.places.get(stage + 1).is_some_and(|next| !next.has_room()) {
            self.places[stage].servers[server] = Server::Blocked(event);
            self.places[stage].blocked.push_back(server);
        } else {
            self.leave(stage, server, event);
        }
    }

    /// Moves an event to the next stage, which has space, and unblocks its predecessors.
    fn leave(&mut self, stage: usize, server: usize, event: Event) {
        let now_ps = self.now_ps;
        let place = &mut self.places[stage];
        place.servers[server] = Server::Free;
        place.free.push(server);
        place.fill -= 1;
        if let Some(since_ps) = place.full_since_ps.take() {
            place.full_ps += now_ps - since_ps;
        }
        if stage + 1 < self.places.len() {
            self.enter(stage + 1, event);
        } else {
            self.latencies_ps.push(now_ps - event.due_ps);
        }
        if stage > 0 {
            if let Some(server) = self.places[stage - 1].blocked.pop_front()
                && let Server::Blocked(event) = self.places[stage - 1].servers[server]
            {
                self.leave(stage - 1, server, event);
            }
        } else if let Some(event) = self.held.take() {
            self.held_ps += now_ps - event.due_ps;
            self.enter(0, event);
            self.next_event();
        }
        self.start(stage);
    }

    fn next_stall(&mut self, stage: usize) {
        let place = &mut self.places[stage];
        if let Some(stalls) = &place.stage.stalls {
            let in_ps = stalls.gap.next_ps(&mut place.chance);
            self.at(in_ps, Happens::StallBegins { stage });
        }
    }

    fn stall(&mut self, stage: usize) {
        let place = &mut self.places[stage];
        let Some(stalls) = &place.stage.stalls else { return };
        let length_ps = stalls.length.next_ps(&mut place.chance);
        place.is_stalled = true;
        place.stalls += 1;
        place.stalled_ps += length_ps;
        place.stall_ps_max = place.stall_ps_max.max(length_ps);
        for server in &mut place.servers {
            if let Server::Busy { until_ps, .. } = server {
                *until_ps += length_ps;
            }
        }
        self.at(length_ps, Happens::StallEnds { stage });
    }

    fn outcome(mut self) -> Outcome {
        let event_bytes = self.simulation.source.event_bytes;
        let time = seconds(self.now_ps);
        let per_second = |events: u64, seconds: f64| events as f64 * event_bytes / seconds;
        let out = self.latencies_ps.len() as u64;
        // Undefined for a single instantaneous burst.
        let sent_in = seconds(self.sending_until_ps);
        let stages: Vec<StageOutcome> =
            self.places.iter().map(|place| place.outcome(self.now_ps, event_bytes)).collect();
        let dead_seconds = match self.simulation.source.when_full {
            WhenFull::Wait => seconds(self.held_ps),
            WhenFull::Lose => stages.first().map_or(0.0, |first| first.full_seconds),
        };
        self.latencies_ps.sort_unstable();
        // Nearest rank.
        let rank = |share: f64| (share * out as f64).ceil() as usize;
        let quantile =
            |share| self.latencies_ps.get(rank(share).saturating_sub(1)).map_or(0.0, |ps| seconds(*ps));
        let sum: f64 = self.latencies_ps.iter().map(|ps| seconds(*ps)).float_sum();
        Outcome {
            seconds: time,
            bytes_per_second_in: per_second(self.due, if sent_in > 0.0 { sent_in } else { time }),
            bytes_per_second_out: per_second(out, time),
            events_out: out,
            events_lost: self.lost,
            bytes_lost: self.lost as f64 * event_bytes,
            dead_seconds,
            latency_seconds_mean: sum / out as f64,
            latency_seconds_p99: quantile(0.99),
            latency_seconds_max: quantile(1.0),
            stages,
        }
    }
}

impl<'a> StageState<'a> {
    fn new(stage: &'a Stage, event_bytes: f64, chance: Rng) -> Self {
        Self {
            stage,
            service_seconds: stage.service_seconds(event_bytes),
            // Saturates for an infinite buffer.
            slots: stage.slots(event_bytes) as u64,
            fill: 0,
            fill_max: 0,
            queue: VecDeque::new(),
            servers: vec![Server::Free; stage.servers as usize],
            free: (0..stage.servers as usize).rev().collect(),
            blocked: VecDeque::new(),
            is_stalled: false,
            full_since_ps: None,
            full_ps: 0,
            stalls: 0,
            stalled_ps: 0,
            stall_ps_max: 0,
            begun: 0,
            waited_ps: 0.0,
            worked_ps: 0.0,
            chance,
        }
    }

    fn has_room(&self) -> bool {
        self.fill < self.slots
    }

    fn outcome(&self, now_ps: u64, event_bytes: f64) -> StageOutcome {
        let servers = f64::from(self.stage.servers);
        StageOutcome {
            name: self.stage.name.clone(),
            utilisation: self.worked_ps / (now_ps as f64 * servers),
            wait_seconds_mean: self.waited_ps / self.begun as f64 / 1e12,
            fill_bytes_max: self.fill_max as f64 * event_bytes,
            full_seconds: seconds(self.full_ps),
            stalls: self.stalls,
            stalled_seconds: seconds(self.stalled_ps),
            stall_seconds_max: seconds(self.stall_ps_max),
        }
    }
}
