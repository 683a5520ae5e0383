//! Faults of machines and of the network.
use std::ops::Range;

use fastrand::Rng;

use super::{Event, MS, Part, World};
use crate::message::HostId;

/// A fault.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// Killed, for good or until a restart after so many ns. Whether the closed connection is noticed.
    Kill(HostId, Option<u64>, bool),
    /// Stopped for so many ns (SIGSTOP).
    Stop(HostId, u64),
    /// Cut from the controller, and from the other hosts, for so many ns.
    Cut(HostId, u64, bool, bool),
    /// A slow link for so many ns.
    Slow(HostId, u64),
    /// The controller is stopped for so many ns.
    StopController(u64),
    /// The controller is killed.
    KillController,
}

impl Fault {
    pub(super) fn draw(hosts: Range<HostId>, rng: &mut Rng) -> Self {
        let host = rng.u32(hosts);
        let time = rng.u64(50 * MS..3_000 * MS);
        match rng.u32(0..12) {
            0..3 => Self::Kill(host, rng.bool().then_some(time), rng.bool()),
            3..5 => Self::Stop(host, time),
            5..9 => Self::Cut(host, time, true, rng.bool()),
            9 => Self::Slow(host, time),
            10 => Self::StopController(time),
            _ if rng.u32(0..3) == 0 => Self::KillController,
            _ => Self::Cut(host, time, false, true),
        }
    }
}

impl World {
    pub(super) fn on_fault(&mut self, fault: Fault) {
        let now = self.now;
        match fault {
            Fault::Kill(host, restart, is_noticed) => {
                let machine = &mut self.machines[host as usize];
                machine.host = None;
                machine.incarnation = 0;
                match &mut machine.part {
                    Part::Recorder(recorder) => recorder.crash(),
                    Part::Source(source) => source.crash(),
                    Part::Drain => {}
                }
                if is_noticed {
                    self.at(now + 15 * MS, Event::Closed(host));
                }
                if let Some(delay) = restart {
                    self.start_host(host, delay);
                }
            }
            Fault::Stop(host, time) => self.machines[host as usize].stopped_until = now + time,
            Fault::Cut(host, time, control, data) => self.net.cut(host, now + time, control, data),
            Fault::Slow(host, time) => self.net.slow(host, now + time),
            Fault::StopController(time) => self.controller_stopped_until = now + time,
            Fault::KillController => self.controller = None,
        }
    }
}
