//! Whole qualifications of simulated fleets: links of known rate, hosts that are lost, an interruption.
use keepup_results::{Count, Verdict};

use super::*;
use crate::controller::PartEnd;
use crate::qualify::summary::{begun, control_warning};
use crate::trial::{EndedPart, RecorderPlan, sample};

const FILE: &str = r#"
name = "hall"
listen = "10.0.0.1:7450"
[launcher]
preset = "local"
[[host]]
name = "s0"
role = "source"
data = "10.1.0.1"
[[host]]
name = "s1"
role = "source"
data = "10.1.0.2"
[[host]]
name = "r0"
role = "recorder"
volumes = ["/a"]
[[host]]
name = "r1"
role = "recorder"
volumes = ["/a"]
"#;

/// Hosts that take no part.
const UNUSED: &str = r#"
[[host]]
name = "s2"
role = "source"
[[host]]
name = "x"
role = "spare"
volumes = ["/a"]
"#;

/// A simulated fleet.
struct Simulated {
    file: FleetFile,
    /// Capacity of each recorder by its number in the file, bytes per second.
    links: BTreeMap<HostId, f64>,
    /// Capacity of the switch, bytes per second.
    switch: f64,
    /// Share of the switch that the recorder 2 gets if nobody limits the senders.
    favoured: f64,
    /// Number of the trial in which a host ends, and how.
    end: Option<(usize, HostId, PartEnd)>,
    /// It ends so in this number of trials.
    end_trials: usize,
    /// A recorder that finds so many faults whenever it verifies.
    faults: Option<(HostId, u64)>,
    /// Payload that the volumes of each recorder can take, bytes.
    usable_bytes: f64,
    /// Trials after which it is stopped.
    stop_after: usize,
    trials: usize,
    control_bytes: u64,
    /// Bytes stored for each byte received.
    stored_share: f64,
    /// Recorders that are tested alone end their recordings early.
    broken_alone: bool,
    /// Where each recorder drained to in each trial.
    drained_to: Vec<BTreeMap<HostId, std::net::SocketAddr>>,
}

impl Simulated {
    fn new(links: [f64; 2], switch: f64) -> Self {
        let links = BTreeMap::from([(2, links[0]), (3, links[1])]);
        let file = FleetFile::parse(FILE).unwrap();
        Self {
            file,
            links,
            switch,
            favoured: 0.5,
            end: None,
            end_trials: usize::MAX,
            faults: None,
            usable_bytes: 1e13,
            stop_after: usize::MAX,
            trials: 0,
            control_bytes: 500,
            stored_share: 0.0,
            broken_alone: false,
            drained_to: Vec::new(),
        }
    }

    /// What a recorder reports that gets through with so many bytes per second.
    fn outcome(&self, plan: &RecorderPlan, carried: f64) -> crate::trial::Outcome {
        let rate = plan.rate.unwrap_or(f64::INFINITY);
        let is_over = rate > carried;
        let achieved = rate.min(carried);
        let mut outcome = sample::outcome(achieved, 0);
        outcome.judged.backlog_growing = plan.rate.is_some() && is_over;
        (outcome.judged.duration_s, outcome.judged.clean_s) = (plan.seconds, plan.seconds);
        outcome.judged.bytes = achieved * plan.seconds;
        outcome.evidence.source_blocked = if is_over { 0.5 } else { 0.0 };
        outcome.evidence.failed = outcome.judged.backlog_growing;
        outcome.is_throttled = is_over;
        let count = Count { events: 100, bytes: (achieved * plan.seconds) as u64 };
        (outcome.run.ledger.received, outcome.run.ledger.durable) = (count, count);
        let stored = (count.bytes as f64 * self.stored_share) as u64;
        outcome.run.ledger.stored = Some(Count { events: 100, bytes: stored });
        outcome.usable_bytes = (!plan.volumes.is_empty()).then_some(self.usable_bytes);
        outcome
    }
}

impl Trials for Simulated {
    fn run(&mut self, plans: &[Option<HostPlan>], asked: Option<f64>) -> Result<TrialEnd, FleetError> {
        self.trials += 1;
        // As on the way to the hosts.
        let plans: Vec<Option<HostPlan>> =
            serde_json::from_str(&serde_json::to_string(plans).unwrap()).unwrap();
        let recorders = plans.iter().flatten().filter(|plan| matches!(plan, HostPlan::Recorder(_))).count();
        let drained = (0..).zip(&plans).filter_map(|(host, plan)| match plan {
            Some(HostPlan::Recorder(RecorderPlan { drain: Some(drain), .. })) => Some((host, drain.to?)),
            _ => None,
        });
        self.drained_to.push(drained.collect());
        let mut ends = Vec::new();
        for (host, plan) in (0..).zip(&plans) {
            let Some(plan) = plan else { continue };
            let is_due =
                |trial: usize| self.trials.checked_sub(trial).is_some_and(|past| past < self.end_trials);
            let failed = self.end.clone().filter(|(trial, gone, _)| *gone == host && is_due(*trial));
            let end = match (failed, plan) {
                (Some((.., end)), _) => end,
                (None, HostPlan::Source(_) | HostPlan::Drain(_)) => PartEnd::Finished(String::new()),
                (None, HostPlan::Recorder(plan)) => {
                    let share = match (recorders, plan.rate, host) {
                        (2, None, 2) => self.favoured,
                        (2, None, _) => 1.0 - self.favoured,
                        _ => 1.0 / recorders as f64,
                    };
                    let carried = self.links[&host].min(self.switch * share);
                    let mut outcome = self.outcome(plan, carried);
                    let faults = self.faults.filter(|(bad, _)| *bad == host && plan.check != ReadBack::None);
                    outcome.run.faults = faults.map(|(_, faults)| faults);
                    let is_broken = self.broken_alone && recorders == 1;
                    outcome.run.broken_off = is_broken.then(|| "volume /a failed".to_owned());
                    PartEnd::Finished(serde_json::to_string(&outcome).unwrap())
                }
            };
            ends.push((host, plan, end));
        }
        let parts: Vec<EndedPart<'_>> = ends
            .iter()
            .map(|(host, plan, end)| EndedPart {
                host: *host,
                plan,
                end: Some(end),
                is_late: false,
                clock: None,
            })
            .collect();
        Ok(TrialEnd::new(&self.file, asked, &parts, self.control_bytes, 2.0))
    }

    fn is_stopped(&self) -> bool {
        self.trials >= self.stop_after
    }
}

/// A profile of 4 streams that needs 50 MB/s.
fn settings(each: bool) -> QualifySettings {
    let text =
        "name = \"t\"\ntitle = \"t\"\n[event]\nsize = \"50 kB\"\n[source]\nrate = \"1000 /s\"\nstreams = 4\n";
    let none =
        |name: &str| Err(keepup_plan::ProfileError::Unknown { name: name.to_owned(), close: Vec::new() });
    let profile = keepup_plan::parse(text, "test", &none).unwrap();
    let write_bytes_max = 400_000_000_000;
    let (soak, left_out) = (None, Vec::new());
    QualifySettings { profile, quick: true, soak, write_bytes_max, to_null: false, each, left_out }
}

fn start() -> Begun {
    Begun {
        id: "0a1b2c3d".to_owned(),
        tool_version: "0.1.0".to_owned(),
        created_unix_ns: 0,
        command: "keepup qualify --fleet hall.toml t".to_owned(),
        workload: "t".to_owned(),
        plan: serde_json::Value::Null,
        environment: serde_json::Value::Null,
    }
}

fn qualified(fleet: &mut Simulated, each: bool) -> FleetQualifySummary {
    let file = fleet.file.clone();
    let (mut lines, mut trials, mut so_far) = (Vec::new(), Vec::new(), (0, ControlTraffic::default()));
    let mut watch = |event: QualifyEvent<'_>| match event {
        QualifyEvent::Line(line) => lines.push(line.to_owned()),
        QualifyEvent::Trial { trial, bytes_written, control } => {
            trials.push(trial.clone());
            so_far = (bytes_written, control);
        }
    };
    let found = qualify(&file, &settings(each), &start(), fleet, &mut watch).unwrap();
    assert!(lines.iter().filter(|line| line.contains("requested")).count() + 1 >= found.trials.len() / 2);
    assert_eq!((&found.trials, (found.bytes_written, found.control)), (&trials, so_far));
    assert_eq!((found.fleet.as_str(), found.workload.as_str(), found.streams), ("hall", "t", 4));
    found
}

/// Whether the quick search, 3 % wide, has found `rate`.
fn is_knee(knee: Option<KneeInterval>, rate: f64) -> bool {
    let knee = knee.unwrap();
    let upper = knee.upper_bytes_per_second.unwrap();
    knee.lower_bytes_per_second <= rate
        && rate <= upper
        && upper - knee.lower_bytes_per_second <= 0.07 * upper
}

#[test]
fn connections_that_share_a_switch_unevenly_do_not_hide_what_it_carries() {
    let mut fleet = Simulated::new([1e9, 1e9], 110e6);
    fleet.favoured = 0.9;
    // The recorder with a tenth of the switch had 11 MB/s in the unthrottled trial, and needs 25 MB/s.
    let found = qualified(&mut fleet, false);
    assert!(is_knee(found.knee, 110e6), "{:?}", found.knee);
    assert_eq!(found.verdict, Verdict::Fit, "{:?}", found.verdict_reasons);
}

#[test]
fn two_links_carry_twice_what_one_does() {
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    let found = qualified(&mut fleet, true);
    assert_eq!((found.verdict, found.lost.len()), (Verdict::Fit, 0));
    assert!(is_knee(found.knee, 200e6), "{:?}", found.knee);
    for host in &found.hosts {
        assert!(is_knee(host.alone, 100e6), "{host:?}");
        assert_eq!((host.streams, host.stage.as_deref()), (2, Some("network")));
    }
    assert_eq!(found.bottleneck.unwrap().stage, "hosts r0 and r1, network");
    assert!(found.soak.unwrap().bytes > 0);
}

#[test]
fn the_slower_link_limits_all_and_is_named() {
    let found = qualified(&mut Simulated::new([100e6, 40e6], 1e12), false);
    // `r1` has half of the streams.
    assert!(is_knee(found.knee, 80e6), "{:?}", found.knee);
    let limit = found.bottleneck.unwrap();
    assert_eq!((limit.stage.as_str(), limit.hosts), ("host r1, network", vec!["r1".to_owned()]));
    assert_eq!(found.hosts[0].failed, None);
    assert_eq!(found.hosts[1].failed.as_deref(), Some("the backlog grew"));
}

#[test]
fn a_shared_switch_is_told_from_the_recorders() {
    let found = qualified(&mut Simulated::new([100e6, 100e6], 120e6), true);
    assert!(is_knee(found.knee, 120e6), "{:?}", found.knee);
    assert_eq!(found.bottleneck.unwrap().stage, "switch or sources");
}

#[test]
fn a_fleet_below_the_required_rate_is_not_fit() {
    let found = qualified(&mut Simulated::new([20e6, 20e6], 1e12), false);
    assert_eq!(found.verdict, Verdict::NotFit, "{:?}", found.verdict_reasons);
}

#[test]
fn a_lost_recorder_is_stated_and_the_others_take_its_streams() {
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    // In the first trial above the knee, which the other recorder fails, too.
    fleet.end = Some((3, 3, PartEnd::Lost));
    let found = qualified(&mut fleet, false);
    assert_eq!(found.verdict, Verdict::FitWithLimits);
    assert_eq!(found.trials[2].parts[0].failed.as_deref(), Some("the backlog grew"));
    assert!(
        found.verdict_reasons[0]
            .starts_with("r1 was lost in trial 3: no heartbeat until its lease expired; the result")
    );
    assert!(is_knee(found.knee, 100e6), "{:?}", found.knee);
    assert_eq!((found.hosts.len(), found.hosts[0].streams), (1, 4));
    assert_eq!(found.trials[2].failed_condition.as_deref(), Some("r1: no heartbeat until its lease expired"));
    assert!(found.trials[3..].iter().all(|trial| trial.parts.len() == 1));
}

#[test]
fn a_rest_that_is_too_slow_leaves_the_question_open() {
    let mut fleet = Simulated::new([40e6, 40e6], 1e12);
    fleet.end = Some((4, 3, PartEnd::Lost));
    let found = qualified(&mut fleet, false);
    assert_eq!(found.verdict, Verdict::Inconclusive, "{:?}", found.verdict_reasons);
}

#[test]
fn a_recorder_that_fails_once_is_tried_again() {
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    fleet.end = Some((3, 3, PartEnd::Failed("no space".to_owned())));
    let found = qualified(&mut fleet, false);
    // It fails in trial 3 and in its repetition.
    assert_eq!((found.lost.len(), found.lost[0].trial, found.lost[0].why.as_str()), (1, 4, "no space"));
    assert_eq!(found.trials[2].asked_bytes_per_second, found.trials[3].asked_bytes_per_second);
}

#[test]
fn a_repetition_that_passes_is_stated_and_charged() {
    let fleet = || Simulated { stored_share: 1.0, ..Simulated::new([100e6, 100e6], 1e12) };
    let clean = qualified(&mut fleet(), false);
    let mut once = fleet();
    (once.end, once.end_trials) = (Some((3, 3, PartEnd::Failed("no space".to_owned()))), 1);
    let found = qualified(&mut once, false);
    assert_eq!((clean.verdict, found.verdict), (Verdict::Fit, Verdict::FitWithLimits));
    let wanted = "trial 3 was repeated because a host failed: r1: no space";
    assert_eq!(found.verdict_reasons.last().unwrap(), wanted);
    assert_eq!((found.lost.len(), found.trials.len()), (0, clean.trials.len() + 1));
    assert_eq!(found.trials[2].asked_bytes_per_second, found.trials[3].asked_bytes_per_second);
    assert_eq!(found.knee, clean.knee);
    // In addition to the others: what `r0` has stored, and what `r1` may have stored.
    let failed = &found.trials[2];
    let share = failed.asked_bytes_per_second.unwrap() / 2.0;
    let wanted = (failed.achieved_bytes_per_second + share) * failed.seconds;
    let more = found.bytes_written as f64 - clean.bytes_written as f64;
    assert!((more - wanted).abs() < 2.0, "{more} {wanted}");
}

#[test]
fn a_search_counts_the_bytes_of_a_failed_trial() {
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    (fleet.end, fleet.end_trials) = (Some((1, 3, PartEnd::Failed("no space".to_owned()))), 1);
    let (file, settings) = (fleet.file.clone(), settings(false));
    let mut watch = |_: QualifyEvent<'_>| ();
    let mut session = Session::new(&file, &settings, &mut fleet, &mut watch);
    let profile = settings.profile.clone();
    let scope = Scope { label: None, profile, without: BTreeSet::new(), soaks: true };
    let (rate, time) = (TrialRate::Bytes(100e6), Duration::from_secs(2));
    let request = Request { phase: "narrow".to_owned(), rate, time, is_soak: false };
    let Ended::Done(tried) = session.trial(&scope, &request).unwrap() else { panic!("it was repeated") };
    assert_eq!(tried.outcome.bytes, 400e6);
}

#[test]
fn space_that_is_out_of_range_is_refused_or_ignored() {
    let mut fleet = Simulated { usable_bytes: -1e12, ..Simulated::new([100e6, 100e6], 1e12) };
    let file = fleet.file.clone();
    let refused = qualify(&file, &settings(false), &start(), &mut fleet, &mut |_| ());
    assert!(matches!(refused, Err(FleetError::Qualify(_))), "{refused:?}");
    fleet = Simulated { usable_bytes: f64::MAX, ..Simulated::new([100e6, 100e6], 1e12) };
    assert_eq!(qualified(&mut fleet, false).verdict, Verdict::Fit);
}

#[test]
fn damage_is_not_forgotten_when_another_host_fails_or_the_run_is_stopped() {
    let fleet = || Simulated::new([100e6, 100e6], 1e12);
    let soak =
        qualified(&mut fleet(), false).trials.iter().position(|trial| trial.phase == "soak").unwrap() + 1;
    let damaged = |end: Option<PartEnd>, stop_after: usize| {
        let end = end.map(|end| (soak, 3, end));
        let found = qualified(&mut Simulated { end, faults: Some((2, 4)), stop_after, ..fleet() }, true);
        assert_eq!(found.verdict, Verdict::NotFit, "{:?}", found.verdict_reasons);
        assert_eq!(found.verdict_reasons[0], "r0: 4 faults found by verification");
        assert_eq!((found.trials.len(), found.interrupted), (soak, false));
    };
    damaged(None, usize::MAX);
    damaged(Some(PartEnd::Failed("no space".to_owned())), usize::MAX);
    damaged(Some(PartEnd::Lost), usize::MAX);
    damaged(None, soak);
}

#[test]
fn damage_after_a_loss_leaves_no_question_open() {
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    (fleet.end, fleet.faults) = (Some((3, 3, PartEnd::Lost)), Some((2, 4)));
    let found = qualified(&mut fleet, false);
    assert_eq!((found.verdict, found.lost.len()), (Verdict::NotFit, 1));
    assert_eq!(found.verdict_reasons[0], "r0: 4 faults found by verification");
    assert!(found.verdict_reasons[1].starts_with("r1 was lost in trial 3"), "{:?}", found.verdict_reasons);
}

#[test]
fn sources_and_spares_that_took_no_part_are_named() {
    let said = |found: &FleetQualifySummary| {
        found.limits.iter().filter(|limit| limit.contains("not tested, ")).count()
    };
    assert_eq!(said(&qualified(&mut Simulated::new([100e6, 100e6], 1e12), false)), 0);
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    fleet.file = FleetFile::parse(&format!("{FILE}{UNUSED}")).unwrap();
    let found = qualified(&mut fleet, false);
    for limit in [
        "not tested, because no recorder used them: sources s2",
        "not tested, because a trial uses no spares: x",
    ] {
        assert!(found.limits.iter().any(|said| said == limit), "{:?}", found.limits);
    }
    let settings = QualifySettings { left_out: vec!["r2".to_owned(), "r3".to_owned()], ..settings(false) };
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    let found = qualify(&fleet.file.clone(), &settings, &start(), &mut fleet, &mut |_| ()).unwrap();
    let limit = "not tested, because of --recorders: r2, r3";
    assert!(found.limits.iter().any(|said| said == limit), "{:?}", found.limits);
    // They are known before the first trial.
    let begun = begun(&fleet.file, &settings, &start());
    assert!(begun.limits.iter().any(|said| said == limit), "{:?}", begun.limits);
    assert!(begun.limits.iter().all(|said| found.limits.contains(said)), "{:?}", begun.limits);
    // A lost source is named with the reasons.
    fleet = Simulated::new([100e6, 100e6], 1e12);
    fleet.end = Some((2, 0, PartEnd::Lost));
    assert_eq!(said(&qualified(&mut fleet, false)), 0);
}

#[test]
fn a_lost_source_leaves_its_recorder() {
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    fleet.end = Some((2, 0, PartEnd::Lost));
    let found = qualified(&mut fleet, false);
    assert_eq!((found.lost[0].host.as_str(), found.hosts.len()), ("s0", 2));
    assert!(found.hosts.iter().all(|host| host.source.starts_with("10.1.0.2:")), "{:?}", found.hosts);
}

#[test]
fn nothing_is_left() {
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    fleet.file.hosts.truncate(3);
    fleet.end = Some((2, 2, PartEnd::Lost));
    let found = qualified(&mut fleet, false);
    assert_eq!((found.verdict, found.hosts.len()), (Verdict::Inconclusive, 0));
    assert!(found.verdict_reasons[0].starts_with("r0 was lost in trial 2"), "{:?}", found.verdict_reasons);
    assert!(!found.interrupted && found.trials.len() == 2);
    assert_eq!(found.verdict_reasons[1], "no recorder with a source is left");
    // Nothing of nothing was received.
    assert_eq!(found.trials[1].achieved_bytes_per_second.to_string(), "0");
}

#[test]
fn an_interruption_keeps_the_results_so_far() {
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    fleet.stop_after = 5;
    let found = qualified(&mut fleet, true);
    assert_eq!((found.verdict, found.interrupted, found.trials.len()), (Verdict::Inconclusive, true, 5));
    assert_eq!(found.verdict_reasons, ["the run was interrupted"]);
}

/// The knee of a search that was cut off says nothing about the recorder.
#[test]
fn recorders_that_were_not_wholly_tested_alone_have_no_own_knee() {
    let fleet = || Simulated::new([100e6, 100e6], 120e6);
    let together = qualified(&mut fleet(), false);
    for more in [1, 4] {
        let stop_after = together.trials.len() + more;
        let found = qualified(&mut Simulated { stop_after, ..fleet() }, true);
        assert_eq!((found.interrupted, found.trials.len(), found.knee), (true, stop_after, together.knee));
        assert!(found.hosts.iter().all(|host| host.alone.is_none()), "{:?}", found.hosts);
        assert_eq!(found.verdict, together.verdict);
    }
    let found = qualified(&mut Simulated { broken_alone: true, ..fleet() }, true);
    assert!(!found.interrupted && found.hosts.iter().all(|host| host.alone.is_none()), "{:?}", found.hosts);
}

#[test]
fn a_recorder_alone_drains_to_the_same_host() {
    let drain = |name: &str, data: &str| {
        format!("[[host]]\nname = \"{name}\"\nrole = \"drain\"\nvolumes = [\"/t\"]\ndata = \"{data}\"\n")
    };
    let drains = [drain("t0", "10.1.0.8"), drain("t1", "10.1.0.9")].concat();
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    fleet.file = FleetFile::parse(&format!("{FILE}{drains}")).unwrap();
    let mut settings = settings(true);
    settings.profile.drain = Some("60 MB/s".parse().unwrap());
    qualify(&fleet.file.clone(), &settings, &start(), &mut fleet, &mut |_| ()).unwrap();
    let host = |to: &std::net::SocketAddr| to.ip().to_string();
    let of = |host_id: HostId, alone: bool| {
        let trials = fleet.drained_to.iter().filter(|trial| (trial.len() == 1) == alone);
        trials.filter_map(|trial| trial.get(&host_id)).map(host).collect::<BTreeSet<_>>()
    };
    for (recorder, address) in [(2, "10.1.0.8"), (3, "10.1.0.9")] {
        let wanted = BTreeSet::from([address.to_owned()]);
        assert_eq!((of(recorder, false), of(recorder, true)), (wanted.clone(), wanted));
    }
}

#[test]
fn a_repetition_does_not_exceed_the_limit_of_bytes() {
    let limited = QualifySettings { write_bytes_max: 4_000_000_000, ..settings(false) };
    let run = |end: Option<(usize, HostId, PartEnd)>| {
        let mut fleet =
            Simulated { stored_share: 1.0, end_trials: 1, ..Simulated::new([100e6, 100e6], 1e12) };
        fleet.end = end;
        let found = qualify(&fleet.file.clone(), &limited, &start(), &mut fleet, &mut |_| ()).unwrap();
        assert!(found.bytes_written <= limited.write_bytes_max, "{}", found.bytes_written);
        found
    };
    let trials = run(None).trials.len();
    for trial in 1..=trials {
        run(Some((trial, 3, PartEnd::Failed("no space".to_owned()))));
    }
}

#[test]
fn without_disks_nothing_limits_the_bytes() {
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    let file = fleet.file.clone();
    let settings = QualifySettings { to_null: true, write_bytes_max: 1, ..settings(false) };
    let found = qualify(&file, &settings, &start(), &mut fleet, &mut |_| ()).unwrap();
    assert_eq!((found.verdict, found.bytes_written), (Verdict::FitWithLimits, 0));
    assert!(found.verdict_reasons.iter().any(|reason| reason.contains("no volume was tested")));
    // With disks, a limit that permits no search is refused.
    let settings = QualifySettings { to_null: false, ..settings };
    assert!(matches!(
        qualify(&file, &settings, &start(), &mut fleet, &mut |_| ()),
        Err(FleetError::Qualify(_))
    ));
}

#[test]
fn too_few_bytes_after_a_search_do_not_lose_its_result() {
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    fleet.stored_share = 1.0;
    // The soak and most trials fit, a second search does not.
    let limited = QualifySettings { write_bytes_max: 4_000_000_000, ..settings(true) };
    let file = fleet.file.clone();
    let found = qualify(&file, &limited, &start(), &mut fleet, &mut |_| ()).unwrap();
    assert!(is_knee(found.knee, 200e6) && found.bytes_written > 2_000_000_000, "{:?}", found.knee);
    // After a loss, the trials so far and the reason are kept.
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    (fleet.stored_share, fleet.end) = (8.0, Some((3, 3, PartEnd::Lost)));
    let found = qualify(&file, &limited, &start(), &mut fleet, &mut |_| ()).unwrap();
    assert_eq!((found.verdict, found.interrupted), (Verdict::Inconclusive, false));
    assert!(found.verdict_reasons[0].starts_with("r1 was lost in trial 3"), "{:?}", found.verdict_reasons);
    assert!(found.verdict_reasons[1].starts_with("cannot search and soak"), "{:?}", found.verdict_reasons);
}

#[test]
fn much_control_traffic_is_stated() {
    let mut fleet = Simulated::new([100e6, 100e6], 1e12);
    assert_eq!(control_warning(&qualified(&mut fleet, false).control), None);
    fleet.control_bytes = 1_000_000_000;
    let found = qualified(&mut fleet, false);
    assert!(control_warning(&found.control).unwrap().contains("more than 0.1 %"));
}
