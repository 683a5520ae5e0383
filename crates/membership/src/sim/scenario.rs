//! What happens in a simulation, drawn from a seed.
use std::collections::BTreeSet;

use fastrand::Rng;

use super::data::{Recorder, Source};
use super::fault::Fault;
use super::{MS, Machine, Part};
use crate::message::{HostId, Role};
use crate::timing::{DRIFT_PPM, Timing};

/// Rules that are broken on purpose, to see that the oracle notices.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flaws {
    /// Recorders take events without a lease.
    pub(super) no_lease_check: bool,
    /// The controller moves streams before the lease has run out.
    pub(super) early_move: bool,
    /// Recorders acknowledge what is in memory.
    pub(super) early_acknowledgement: bool,
}

/// A scenario.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) recorders: u32,
    pub(super) spares: u32,
    pub(super) sources: u32,
    pub(super) drains: u32,
    /// How long a recorder drains after the end of its recording, ns.
    pub(super) drain_ns: u64,
    pub(super) streams_per_source: u32,
    /// How long sources emit, ns.
    pub(super) emit_ns: u64,
    /// Interval between bursts of a source, ns.
    pub(super) burst_ns: u64,
    /// When the run is ended by command, ns.
    pub(super) finish_ns: Option<u64>,
    /// When it is to end without waiting for drains, ns.
    pub(super) hurry_ns: Option<u64>,
    /// Shares of messages that are lost, repeated, or late by up to 400 ms.
    pub(super) loss: f64,
    pub(super) repeats: f64,
    pub(super) tail: f64,
    pub(super) faults: Vec<(u64, Fault)>,
    pub(super) flaws: Flaws,
}

impl Scenario {
    /// A small fleet with faults of all kinds.
    pub(super) fn draw(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x5eed);
        let (recorders, spares, sources) = (rng.u32(1..6), rng.u32(0..3), rng.u32(1..5));
        let hosts = recorders + spares + sources;
        let count = rng.usize(0..7);
        let faults = (0..count).map(|_| (rng.u64(100 * MS..4_000 * MS), Fault::draw(0..hosts, &mut rng)));
        let mut faults: Vec<_> = faults.collect();
        let is_clean = rng.bool();
        let share = |rng: &mut Rng| if is_clean { 0.0 } else { rng.f64() * 0.03 };
        let scenario = Self {
            seed,
            recorders,
            spares,
            sources,
            drains: 0,
            drain_ns: 0,
            streams_per_source: rng.u32(1..9),
            emit_ns: rng.u64(500 * MS..3_000 * MS),
            burst_ns: rng.u64(10 * MS..50 * MS),
            finish_ns: rng.bool().then(|| rng.u64(600 * MS..3_000 * MS)),
            hurry_ns: None,
            loss: share(&mut rng),
            repeats: share(&mut rng),
            tail: share(&mut rng),
            faults: Vec::new(),
            flaws: Flaws::default(),
        };
        let drains = rng.u32(0..3);
        for drain in hosts..hosts + drains {
            if rng.u32(0..4) == 0 {
                faults.push((rng.u64(100 * MS..4_000 * MS), Fault::draw(drain..drain + 1, &mut rng)));
            }
        }
        let drain_ns = if drains > 0 { rng.u64(0..20_000 * MS) } else { 0 };
        let hurry_ns = (rng.u32(0..3) == 0).then(|| rng.u64(3_000 * MS..15_000 * MS));
        Self { drains, drain_ns, hurry_ns, faults, ..scenario }
    }

    /// Whether every source must get acknowledgements for all of its events: neither a source nor the
    /// controller fails, every recorder can be reached, and one of them never fails.
    pub(super) fn must_keep_all(&self) -> bool {
        let takers = self.recorders + self.spares;
        let is_source = |host: HostId| (takers..takers + self.sources).contains(&host);
        let (mut failing, mut controller_stopped) = (BTreeSet::new(), 0);
        for (_, fault) in &self.faults {
            match *fault {
                Fault::KillController | Fault::Cut(_, _, _, true) => return false,
                Fault::Kill(host, ..) | Fault::Stop(host, _) | Fault::Cut(host, ..) if is_source(host) => {
                    return false;
                }
                Fault::Kill(host, ..) | Fault::Stop(host, _) | Fault::Cut(host, ..) => {
                    failing.insert(host);
                }
                Fault::StopController(time) => controller_stopped += time,
                Fault::Slow(..) => {}
            }
        }
        // Hosts that hear nothing for so long exit.
        let is_led = controller_stopped + 500 * MS < Timing::recording().orphan_ns;
        is_led && (0..self.recorders).any(|recorder| !failing.contains(&recorder))
    }

    pub(super) fn roles(&self) -> Vec<Role> {
        let all = [
            (Role::Recorder, self.recorders),
            (Role::Spare, self.spares),
            (Role::Source, self.sources),
            (Role::Drain, self.drains),
        ];
        all.iter().flat_map(|&(role, count)| (0..count).map(move |_| role)).collect()
    }

    pub(super) const fn streams(&self) -> u32 {
        self.sources * self.streams_per_source
    }

    /// The source of a stream.
    pub(super) const fn source_of(&self, stream: u32) -> HostId {
        self.recorders + self.spares + stream / self.streams_per_source
    }

    pub(super) fn machine(&self, id: HostId, role: Role, rng: &mut Rng) -> Machine {
        let drift = (DRIFT_PPM / 2) as i64;
        let part = match role {
            Role::Source => {
                let index = id - self.recorders - self.spares;
                let first = index * self.streams_per_source;
                Part::Source(Source::new(first..first + self.streams_per_source))
            }
            Role::Recorder | Role::Spare => Part::Recorder(Recorder::default()),
            Role::Drain => Part::Drain,
        };
        Machine {
            host: None,
            incarnation: 0,
            role,
            clock: (rng.u64(0..1 << 50), rng.i64(-drift..drift)),
            stopped_until: 0,
            part,
        }
    }

    pub(super) fn host_timing(&self) -> Timing {
        let recording = Timing::recording();
        let lease_ns = if self.flaws.no_lease_check { u64::MAX / 2 } else { recording.lease_ns };
        Timing { lease_ns, ..recording }
    }

    pub(super) fn controller_timing(&self) -> Timing {
        let recording = Timing::recording();
        let lease_ns = if self.flaws.early_move { recording.heartbeat_ns * 2 } else { recording.lease_ns };
        Timing { lease_ns, finish_ns: 8_000 * MS, ..recording }
    }
}
