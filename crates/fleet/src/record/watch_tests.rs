//! Figures of a fleet of two recorders and a spare, from the reports that a controller has.
use std::net::SocketAddr;

use keepup_results::live::FleetHost;

use super::*;
use crate::clock::Offset;
use crate::controller::RunKind;
use crate::message::{Counters, Health, Heartbeat, HostState, VERSION, VolumeHealth};
use crate::record::{RecordOutcome, RecordRequest, RecorderSettings, plans};
use crate::timing::Timing;

const MS: u64 = 1_000_000;
/// The hosts' clocks are ahead of the controller's.
const AHEAD_NS: u64 = 5_000 * MS;

struct Fleet {
    controller: Controller,
    watch: FleetWatch,
    numbers: [u64; 3],
    events: Vec<FleetEvent>,
}

impl Fleet {
    /// Recording run 3 since 20 ms.
    fn running() -> Self {
        let mut fleet = Self::joined();
        let plans = (0..3).map(|_| Some(String::new())).collect();
        let mut out = Vec::new();
        fleet.controller.start_run(10 * MS, (3, RunKind::Recording), plans, &mut out).unwrap();
        for host in 0..3 {
            let address = Some(SocketAddr::from(([10, 0, 0, host as u8], 7000)));
            fleet.beat(15, host, HostState::Ready { run: 3, address }, 0, None);
        }
        (0..3).for_each(|host| fleet.beat(20, host, HostState::Running { run: 3 }, 0, None));
        fleet
    }

    fn joined() -> Self {
        let host = |name: &str, role: &str| {
            let first = format!("[[host]]\nname = {name:?}\nrole = {role:?}\n");
            format!("{first}volumes = [\"/a\", \"/b\"]\ndata = \"10.0.0.1\"\n")
        };
        let text = format!(
            "name = \"hall\"\nlisten = \"10.0.0.9\"\n[launcher]\npreset = \"local\"\n\
             program = \"keepup\"\n{}{}{}",
            host("daq1", "recorder"),
            host("daq2", "recorder"),
            host("daq3", "spare")
        );
        let file: FleetFile = text.parse().unwrap();
        let settings = RecorderSettings::of(&keepup_recorder::RecorderConfig::new(
            SocketAddr::from(([127, 0, 0, 1], 0)).into(),
            keepup_recorder::Target::Null,
            String::new(),
        ));
        let request =
            RecordRequest { name: "run".into(), run: 3, metadata: Default::default(), port: 7611, settings };
        let watch = FleetWatch::new(&file, 3, &plans(&file, &request).unwrap());
        let controller = Controller::new(1, Timing::recording(), &file.roles(), 0);
        let mut fleet = Self { controller, watch, numbers: [0; 3], events: Vec::new() };
        (0..3).for_each(|host| fleet.beat(1, host, HostState::Idle, 0, None));
        fleet
    }

    /// A heartbeat of a host that has received `bytes`, and an observation.
    fn beat(&mut self, ms: u64, host: HostId, state: HostState, bytes: u64, health: Option<Health>) {
        let out = self.deliver(ms, host, state, bytes, health);
        self.take(ms, out);
    }

    /// A heartbeat of a host that has received `bytes`. Returns the actions, which [`Fleet::take`] handles.
    fn deliver(
        &mut self,
        ms: u64,
        host: HostId,
        state: HostState,
        bytes: u64,
        health: Option<Health>,
    ) -> Vec<crate::controller::Action> {
        self.numbers[host as usize] += 1;
        let counters = Counters { events: bytes / 100, bytes, connected_streams: 2, ..Counters::default() };
        let heartbeat = Heartbeat {
            version: VERSION,
            host,
            incarnation: 7,
            number: self.numbers[host as usize],
            sent_ns: ms * MS + AHEAD_NS,
            state,
            epoch: self.controller.view().epoch,
            clock: Some(Offset { ns: -(AHEAD_NS as i64), error_ns: 100_000 }),
            counters,
            health: health.map(Box::new),
        };
        let mut out = Vec::new();
        self.controller.on_heartbeat(ms * MS, heartbeat, &mut out);
        out
    }

    fn tick(&mut self, ms: u64) {
        let mut out = Vec::new();
        self.controller.tick(ms * MS, &mut out);
        self.take(ms, out);
    }

    fn take(&mut self, ms: u64, out: Vec<crate::controller::Action>) {
        self.watch.observe(&self.controller);
        for action in out {
            if let crate::controller::Action::Report(event) = action {
                self.watch.on_event(ms * MS, &event);
                self.events.push(event);
            }
        }
    }

    fn run(&mut self, ms: u64, host: HostId, bytes: u64, health: Option<Health>) {
        self.beat(ms, host, HostState::Running { run: 3 }, bytes, health);
    }

    fn sample(&mut self, ms: u64) -> FleetNow {
        self.watch.sample(ms * MS)
    }

    /// Host 1 is silent from 1 s on; the others are not.
    fn lose_host_1(&mut self) {
        self.run(1_000, 1, 1_000, Some(health(900)));
        for ms in (1_000..2_000).step_by(100) {
            self.run(ms, 0, ms, None);
            self.run(ms, 2, 0, None);
            self.tick(ms);
        }
    }
}

fn health(durable_bytes: u64) -> Health {
    let volume = VolumeHealth { free_bytes: Some(10), longest_ns: 5 * MS, ..VolumeHealth::default() };
    let worse = VolumeHealth { has_failed: true, oldest_ns: 3_000 * MS, ..VolumeHealth::default() };
    Health {
        durable_bytes,
        pool_bytes: 1_000,
        pool_used_bytes: 400,
        volumes: vec![volume, worse, VolumeHealth::default()],
        ..Health::default()
    }
}

/// State of a recorder that has received `bytes` and written them, with 4 events missing.
fn finished(bytes: u64) -> HostState {
    let outcome = RecordOutcome {
        recording: keepup_recording::id::Id([1; 16]),
        directories: vec!["/a/run".into()],
        ended: "stopped on request".to_owned(),
        is_whole: false,
        streams: 2,
        received_events: bytes / 100,
        received_bytes: bytes,
        durable_events: bytes / 100,
        durable_bytes: bytes,
        missing_events: 4,
        missing: [("volume failed\nforged line".to_owned(), 4)].into(),
        elapsed_ns: 1,
        cpu_ns: 0,
        incidents: Vec::new(),
        drain: None,
    };
    HostState::Finished { run: 3, outcome: serde_json::to_string(&outcome).unwrap() }
}

fn states(now: &FleetNow) -> Vec<FleetHostState> {
    now.hosts.iter().map(|host: &FleetHost| host.state).collect()
}

#[test]
fn rates_follow_from_the_clocks_of_the_hosts() {
    let mut fleet = Fleet::running();
    fleet.run(1_020, 0, 1_000, Some(health(0)));
    fleet.sample(1_030);
    // 2 s by the host, although 2.9 s pass here; the last heartbeat has no health.
    fleet.run(2_020, 0, 1_500, Some(health(800)));
    fleet.run(3_020, 0, 5_000, None);
    let now = fleet.sample(3_930);
    let host = &now.hosts[0];
    assert_eq!((host.flow.received_bytes_per_second, host.flow.durable_bytes_per_second), (2_000.0, 800.0));
    assert_eq!((host.flow.received_events_per_second, host.flow.durable.bytes), (20.0, 800));
    assert_eq!(host.pool.unwrap().room_seconds, Some(0.3));
    assert_eq!(host.heartbeat_age_seconds, Some(0.91));
    assert_eq!((host.clock_offset_seconds, host.clock_error_seconds), (Some(-5.0), Some(0.0001)));
    // Nothing new: the rate stays.
    assert_eq!(fleet.sample(4_000).flow.received_bytes_per_second, 2_000.0);
}

#[test]
fn volumes_have_their_paths_and_failures() {
    let mut fleet = Fleet::running();
    let warnings = vec!["/b/run takes no more data: no space\nforged line".to_owned()];
    fleet.run(100, 0, 10, Some(Health { warnings, missing: [("x".into(), 2)].into(), ..health(5) }));
    let now = fleet.sample(200);
    let volumes = &now.hosts[0].volumes;
    let paths: Vec<&str> = volumes.iter().map(|volume| volume.path.as_str()).collect();
    assert_eq!(paths, ["/a/run", "/b/run"], "a third volume is not in the plan");
    assert_eq!((volumes[1].failed, volumes[1].stalled_seconds, volumes[1].longest_seconds), (true, 3.0, 3.0));
    assert_eq!(now.failures, ["daq1: /b/run takes no more data"]);
    assert_eq!(now.warnings, ["daq1: /b/run takes no more data: no space forged line"]);
    assert_eq!((now.flow.missing_events, now.flow.missing["x"]), (2, 2));
}

#[test]
fn rejected_data_are_a_failure_unless_they_are_of_strangers() {
    let mut fleet = Fleet::running();
    let healthy = Health { volumes: Vec::new(), ..health(5) };
    let count = |events| [("malformed".to_owned(), events)].into();
    fleet.run(100, 0, 10, Some(Health { foreign: count(3), ..healthy.clone() }));
    let now = fleet.sample(200);
    assert_eq!((now.flow.foreign["malformed"], now.flow.rejected.len()), (3, 0));
    assert!(now.failures.is_empty(), "{:?}", now.failures);
    fleet.run(300, 0, 10, Some(Health { rejected: count(7), ..healthy.clone() }));
    fleet.run(300, 1, 10, Some(Health { rejected: count(2), ..healthy }));
    let now = fleet.sample(400);
    assert_eq!((now.flow.rejected["malformed"], now.hosts[1].flow.rejected["malformed"]), (9, 2));
    let failure = |host: &str, count| format!("{host}: {count} not recorded, rejected as malformed");
    assert_eq!(now.failures, [failure("daq1", 7), failure(&now.hosts[1].name, 2)]);
}

#[test]
fn states_are_those_of_the_run() {
    let mut fleet = Fleet::joined();
    assert_eq!(states(&fleet.sample(5)), [FleetHostState::Preparing; 3]);
    let mut fleet = Fleet::running();
    use FleetHostState::{Ended, Ending, Failed, Lost, Recording, Reserve};
    assert_eq!(states(&fleet.sample(100)), [Recording, Recording, Reserve]);
    fleet.lose_host_1();
    let now = fleet.sample(2_000);
    assert_eq!(states(&now), [Recording, Lost, Recording]);
    assert_eq!(
        now.moves,
        [FleetMove { from: "daq2".into(), to: Some("daq3".into()), at_unix_ns: 1_700 * MS }]
    );
    let lost = "daq2 is lost: no heartbeat until its lease expired";
    assert!(now.failures.contains(&lost.to_owned()) && now.warnings[0] == lost, "{now:#?}");
    assert_eq!(now.warnings[1..], ["the streams of daq2 moved to daq3", "no spare is left"]);
    fleet.beat(2_050, 0, HostState::Finishing { run: 3 }, 0, None);
    assert_eq!(states(&fleet.sample(2_060))[0], Ending);
    fleet.beat(2_070, 0, finished(0), 0, None);
    fleet.beat(2_080, 2, HostState::Failed { run: 3, why: "disk".into() }, 0, None);
    let now = fleet.sample(2_100);
    assert_eq!((states(&now), now.hosts[2].why.as_deref()), (vec![Ended, Lost, Failed], Some("disk")));
}

#[test]
fn a_lost_host_keeps_its_counts_and_has_no_rate() {
    let mut fleet = Fleet::running();
    fleet.sample(100);
    fleet.lose_host_1();
    let now = fleet.sample(2_000);
    let lost = &now.hosts[1].flow;
    assert_eq!((lost.received.bytes, lost.durable.bytes, lost.connected_streams), (1_000, 900, 0));
    assert_eq!((lost.received_bytes_per_second, lost.durable_bytes_per_second), (0.0, 0.0));
    assert_eq!(now.flow.received.bytes, 1_000 + 1_900);
    // It is back, and counts from zero.
    fleet.run(2_100, 1, 0, None);
    let back = fleet.sample(2_200);
    assert_eq!((back.hosts[1].state, back.hosts[1].flow.received.bytes), (FleetHostState::Lost, 1_000));
    assert_eq!(back.hosts[1].heartbeat_age_seconds, Some(0.1));
}

#[test]
fn a_spare_without_streams_is_no_failure() {
    let mut fleet = Fleet::running();
    fleet.watch.on_event(50 * MS, &FleetEvent::PartOver(2, crate::controller::PartEnd::Lost));
    let now = fleet.sample(100);
    assert_eq!((now.failures.len(), now.warnings.len(), states(&now)[2]), (0, 1, FleetHostState::Lost));
}

#[test]
fn the_final_figures_are_those_of_the_result() {
    let mut fleet = Fleet::running();
    fleet.run(1_000, 0, 1_000, Some(health(500)));
    // Both heartbeats arrive before the next observation, which sees only the second one.
    let mut out = fleet.deliver(1_100, 0, finished(5_000), 5_000, Some(health(5_000)));
    out.extend(fleet.deliver(1_110, 0, HostState::Idle, 5_000, None));
    fleet.take(1_120, out);
    for ms in [1_200, 1_300] {
        let now = fleet.sample(ms);
        let flow = &now.hosts[0].flow;
        assert_eq!(now.hosts[0].state, FleetHostState::Ended);
        assert_eq!((flow.received, flow.durable), (Count { events: 50, bytes: 5_000 }, flow.received));
        assert_eq!((flow.missing_events, flow.missing["volume failed forged line"]), (4, 4));
        assert_eq!((flow.connected_streams, flow.received_bytes_per_second), (0, 0.0));
        assert!(now.hosts[0].pool.is_some(), "it keeps its last health");
        fleet.beat(ms + 50, 0, HostState::Idle, 0, None);
    }
}

#[test]
fn a_malformed_result_is_a_failure() {
    let mut fleet = Fleet::running();
    fleet.beat(100, 0, HostState::Finished { run: 3, outcome: "{}".into() }, 10, None);
    let now = fleet.sample(200);
    assert_eq!(states(&now)[0], FleetHostState::Failed);
    assert!(now.failures[0].starts_with("daq1 has failed: malformed result: "), "{:?}", now.failures);
    assert_eq!(now.hosts[0].flow.received.bytes, 10);
}
