//! Hosts without a result, late results, and the bytes that they may have stored.
use super::*;
use crate::trial::{ReadBack, RecorderPlan, SourcePlan, sample};

const FILE: &str = r#"
name = "hall"
listen = "10.0.0.1:7450"
launcher = { preset = "ssh" }
host = [
    { name = "s0", role = "source" },
    { name = "r0", role = "recorder", volumes = ["/a"] },
]
"#;

fn recorder(rate: Option<f64>) -> HostPlan {
    HostPlan::Recorder(RecorderPlan {
        profile: String::new(),
        rate,
        bytes_max: Some(5e9),
        seconds: 2.5,
        volumes: vec!["/a".into()],
        source: "s0:7614".to_owned(),
        check: ReadBack::None,
        cut_off: false,
        drain: None,
    })
}

/// End of a trial in which `r0` has this part.
fn ended(plan: &HostPlan, end: Option<&PartEnd>, is_late: bool) -> TrialEnd {
    let file = FleetFile::parse(FILE).unwrap();
    let source = HostPlan::Source(SourcePlan { listen: "0.0.0.0:7614".to_owned(), recorders: 1 });
    let served = PartEnd::Finished(String::new());
    let parts = [
        EndedPart { host: 0, plan: &source, end: Some(&served), is_late: false, clock: None },
        EndedPart { host: 1, plan, end, is_late, clock: None },
    ];
    TrialEnd::new(&file, Some(40e6), &parts, 0, 3.0)
}

#[test]
fn a_part_without_a_result_is_charged_with_what_it_was_to_store() {
    let bytes = |plan: &HostPlan, end: &PartEnd| {
        let ended = ended(plan, Some(end), false);
        assert_eq!(ended.missing.len(), 1);
        ended.unreported_bytes()
    };
    for end in [PartEnd::Lost, PartEnd::Failed("no space".to_owned()), PartEnd::TimedOut(Phase::Running)] {
        assert_eq!(bytes(&recorder(Some(40e6)), &end), 100_000_000, "{end:?}");
        assert_eq!(bytes(&recorder(None), &end), 5_000_000_000, "{end:?}");
    }
    for end in [PartEnd::Absent, PartEnd::TimedOut(Phase::Preparing)] {
        assert_eq!(bytes(&recorder(Some(40e6)), &end), 0, "{end:?}");
    }
    let HostPlan::Recorder(plan) = recorder(Some(40e6)) else { unreachable!() };
    let to_null = HostPlan::Recorder(RecorderPlan { volumes: Vec::new(), ..plan });
    assert_eq!(bytes(&to_null, &PartEnd::Lost), 0);
}

#[test]
fn a_late_result_does_not_make_the_trial_whole() {
    let plan = recorder(Some(40e6));
    let finished = PartEnd::Finished(serde_json::to_string(&sample::outcome(40e6, 0)).unwrap());
    let in_time = ended(&plan, Some(&finished), false);
    assert!(in_time.missing.is_empty() && in_time.trial.is_whole());
    let late = ended(&plan, Some(&finished), true);
    assert!(!late.trial.is_whole() && late.trial.hosts[0].outcome.is_some());
    let missing = &late.missing[0];
    assert_eq!((missing.why.as_str(), missing.is_lost), ("it did not end in time", true));
    assert_eq!(late.unreported_bytes(), 0);
    // A recorder that does not even end when it is asked to.
    let hung = PartEnd::TimedOut(Phase::FinishingRecorders);
    let hung = ended(&plan, Some(&hung), true);
    assert_eq!(hung.missing[0].why, "it timed out while ending the recording");
    assert_eq!(hung.unreported_bytes(), 100_000_000);
}

#[test]
fn figures_out_of_range_are_malformed_results() {
    let plan = recorder(Some(40e6));
    let why = |change: fn(&mut Outcome)| {
        let mut outcome = sample::outcome(40e6, 0);
        change(&mut outcome);
        let finished = PartEnd::Finished(serde_json::to_string(&outcome).unwrap());
        let ended = ended(&plan, Some(&finished), false);
        assert_eq!(ended.trial.hosts[0].outcome, None);
        assert!(ended.trial.achieved_bytes_per_second == 0.0 && !ended.missing[0].is_lost);
        // It may have stored all that it was to store.
        assert_eq!(ended.unreported_bytes(), 100_000_000);
        ended.missing[0].why.clone()
    };
    let rate = "malformed result: a rate of ";
    assert_eq!(
        why(|out| out.run.achieved_bytes_per_second = 1e300),
        format!("{rate}1e300 bytes/s is out of range")
    );
    assert_eq!(why(|out| out.judged.achieved_rate = -1.0), format!("{rate}-1e0 bytes/s is out of range"));
    assert!(why(|out| out.evidence.durable_rate = f64::MAX).starts_with(rate));
    assert!(why(|out| out.run.durable_bytes_per_second = Some(1e16)).starts_with(rate));
    assert!(why(|out| out.judged.duration_s = 1e300).starts_with("malformed result: a time of"));
    assert!(why(|out| out.start_delay_seconds = -1e300).starts_with("malformed result: a time of"));
    assert!(why(|out| out.judged.bytes = -5.0).starts_with("malformed result: an amount of"));
    // JSON has no number for it.
    assert!(why(|out| out.judged.offered_rate = f64::NAN).starts_with("malformed result: "));
}

/// The recorder works, so the drain host is what the next trials do without.
#[test]
fn a_failed_drain_is_charged_to_its_drain_host() {
    let drain = "{ name = \"t0\", role = \"drain\", data = \"10.1.0.7\" },\n]";
    let file =
        FleetFile::parse(&FILE.trim_end().strip_suffix(']').map(|text| [text, drain].concat()).unwrap());
    let file = file.unwrap();
    let mut profile = keepup_plan::load("romanis").unwrap();
    profile.drain = Some("60 MB/s".parse().unwrap());
    let request = crate::trial::TrialRequest {
        profile,
        rate: crate::trial::TrialRate::Bytes(40e6),
        time: std::time::Duration::from_secs(2),
        to_null: false,
        check: ReadBack::None,
        cut_off: false,
        without: Default::default(),
    };
    let plans = crate::trial::plans(&file, &request).unwrap();
    let outcome = Outcome { drain_failure: Some("no route".to_owned()), ..sample::outcome(40e6, 0) };
    let recorded = PartEnd::Finished(serde_json::to_string(&outcome).unwrap());
    let others = PartEnd::Finished(String::new());
    let parts = (0..).zip(&plans).map(|(host, plan)| {
        let end = if host == 1 { &recorded } else { &others };
        EndedPart { host, plan: plan.as_ref().unwrap(), end: Some(end), is_late: false, clock: None }
    });
    let parts: Vec<EndedPart<'_>> = parts.collect();
    let end = TrialEnd::new(&file, Some(40e6), &parts, 0, 3.0);
    let [missing] = &end.missing[..] else { panic!("{:?}", end.missing) };
    assert_eq!((missing.host, missing.name.as_str(), missing.is_lost), (2, "t0", false));
    assert_eq!(missing.why, "the drain of r0: no route");
    assert!(end.trial.hosts[0].failure.is_none() && end.trial.hosts[0].outcome.is_some());
    // Without a drain host it is the recorder's own.
    let own = TrialEnd::new(&file, Some(40e6), &parts[..2], 0, 3.0);
    assert_eq!(own.missing[0].host, 1);
    assert!(own.trial.table().contains("r0: its drain: no route"), "{}", own.trial.table());
}
