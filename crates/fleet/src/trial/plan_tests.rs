//! Shares of hosts, and trials that a fleet cannot run.
use super::*;

const FILE: &str = r#"
name = "hall"
listen = "10.0.0.1:7450"
[launcher]
preset = "ssh"
[[host]]
name = "s0"
role = "source"
data = "10.1.0.1"
[[host]]
name = "r0"
role = "recorder"
volumes = ["/a"]
[[host]]
name = "r1"
role = "recorder"
volumes = ["/a", "/b"]
[[host]]
name = "s1"
role = "source"
[[host]]
name = "r2"
role = "recorder"
volumes = ["/a"]
[[host]]
name = "x"
role = "spare"
volumes = ["/a"]
"#;

fn request(streams: u32) -> TrialRequest {
    let profile = keepup_plan::load("romanis").unwrap().with_streams(streams);
    TrialRequest {
        profile,
        rate: TrialRate::Bytes(70e6),
        time: Duration::from_secs(5),
        to_null: false,
        check: ReadBack::Whole,
        cut_off: false,
        without: BTreeSet::new(),
    }
}

fn recorder(plan: &Option<HostPlan>) -> &RecorderPlan {
    let Some(HostPlan::Recorder(plan)) = plan else { panic!("{plan:?}") };
    plan
}

#[test]
fn streams_rates_and_sources_are_dealt() {
    let file = FleetFile::parse(FILE).unwrap();
    let plans = plans(&file, &request(7)).unwrap();
    let shares = [1, 2, 4].map(|host| recorder(&plans[host]));
    let streams = shares.map(|plan| super::super::recorder::profile(&plan.profile).unwrap().streams);
    // As in a recording: streams 0 and 5, 1 and 3, 2, 4 and 6.
    assert_eq!(streams, [2, 2, 3]);
    let total: f64 = shares.iter().filter_map(|plan| plan.rate).sum();
    assert!((total - 70e6).abs() < 1.0 && (shares[2].rate.unwrap() - 30e6).abs() < 1.0);
    assert_eq!(shares.map(|plan| plan.volumes.len()), [1, 2, 1]);
    let port = SOURCE_PORT;
    let sources = shares.map(|plan| plan.source.clone());
    assert_eq!(sources, [format!("10.1.0.1:{port}"), format!("s1:{}", port + 1), format!("10.1.0.1:{port}")]);
    let source = |listen: String, recorders| Some(HostPlan::Source(SourcePlan { listen, recorders }));
    assert_eq!(plans[0], source(format!("10.1.0.1:{port}"), 2));
    assert_eq!(plans[3], source(format!("0.0.0.0:{}", port + 1), 1));
    assert_eq!(plans[5], None);
}

#[test]
fn plans_survive_the_way_to_the_host() {
    let file = FleetFile::parse(FILE).unwrap();
    for rate in [TrialRate::Profile, TrialRate::Bytes(1e6), TrialRate::Max(None), TrialRate::Max(Some(1e9))] {
        let request = TrialRequest { rate, check: ReadBack::Sample(1.5), ..request(7) };
        for plan in plans(&file, &request).unwrap().into_iter().flatten() {
            let text = serde_json::to_string(&plan).unwrap();
            assert_eq!(serde_json::from_str::<HostPlan>(&text).unwrap(), plan);
        }
    }
}

#[test]
fn a_trial_without_what_it_needs_is_refused() {
    let refused = |text: &str, streams: u32| {
        let file = FleetFile::parse(text).unwrap();
        plans(&file, &request(streams)).unwrap_err().to_string()
    };
    assert!(refused(FILE, 2).contains("2 streams for 3 recorders"));
    let long = TrialRequest { time: Duration::from_secs(400 * 86_400), ..request(7) };
    let why = plans(&FleetFile::parse(FILE).unwrap(), &long).unwrap_err().to_string();
    assert!(why.contains("more than a year"), "{why}");
    assert!(refused(&FILE.replace("\"source\"", "\"spare\"\nvolumes = [\"/c\"]"), 7).contains("one source"));
}

#[test]
fn without_disks_recorders_get_no_volumes() {
    let request = TrialRequest { to_null: true, ..request(7) };
    let plans = plans(&FleetFile::parse(FILE).unwrap(), &request).unwrap();
    assert!(recorder(&plans[1]).volumes.is_empty());
}

#[test]
fn hosts_without_a_part_leave_their_streams_to_the_others() {
    let file = FleetFile::parse(FILE).unwrap();
    let without = TrialRequest { without: BTreeSet::from([0, 2]), ..request(7) };
    let parts = plans(&file, &without).unwrap();
    assert_eq!((&parts[0], &parts[2]), (&None, &None));
    // The port of a source does not depend on the others.
    let source = format!("s1:{}", SOURCE_PORT + 1);
    let shares = [1, 4].map(|host| recorder(&parts[host]));
    assert_eq!(shares.map(|plan| plan.source.clone()), [source.clone(), source]);
    let streams = shares.map(|plan| super::super::recorder::profile(&plan.profile).unwrap().streams);
    assert_eq!(streams, [4, 3]);
    let no_source = TrialRequest { without: BTreeSet::from([0, 3]), ..request(7) };
    assert!(plans(&file, &no_source).unwrap_err().to_string().contains("one source"));
}

#[test]
fn an_unthrottled_trial_shares_its_bytes() {
    let file = FleetFile::parse(FILE).unwrap();
    let request = TrialRequest { rate: TrialRate::Max(Some(14e6)), ..request(7) };
    let parts = plans(&file, &request).unwrap();
    let shares = [1, 2, 4].map(|host| recorder(&parts[host]));
    assert_eq!(shares.map(|plan| plan.rate), [None; 3]);
    let bytes = shares.map(|plan| plan.bytes_max.unwrap());
    assert!((bytes[2] - 6e6).abs() < 1.0 && (bytes[1] - 4e6).abs() < 1.0, "{bytes:?}");
}

/// Two drain hosts for three recorders, and a profile with a drain.
fn drained(data: &str) -> (FleetFile, TrialRequest) {
    let drain = |name: &str, more: &str| format!("[[host]]\nname = \"{name}\"\nrole = \"drain\"\n{more}\n");
    let hosts = [drain("t", "data = \"10.1.0.7\"\nvolumes = [\"/t\"]"), drain("u", data)].concat();
    let mut request = request(6);
    request.profile.drain = Some("60 MB/s".parse().unwrap());
    (FleetFile::parse(&[FILE, &hosts].concat()).unwrap(), request)
}

#[test]
fn recorders_drain_their_share_to_drain_hosts() {
    let (file, request) = drained("data = \"10.1.0.8\"");
    let all = plans(&file, &request).unwrap();
    let drains = [1, 2, 4].map(|host| recorder(&all[host]).drain.unwrap());
    let to = drains.map(|drain| drain.to.unwrap().to_string());
    assert_eq!(to, ["10.1.0.7:7616", "10.1.0.8:7616", "10.1.0.7:7617"]);
    assert!(drains.iter().all(|drain| (drain.rate - 20e6).abs() < 1.0), "{drains:?}");
    let Some(HostPlan::Drain(plan)) = &all[6] else { panic!("{all:#?}") };
    assert!(plan.is_trial && plan.copies.len() == 2);
    assert!(plan.copies.iter().all(|copy| copy.volumes == [PathBuf::from("/t")]));
    // One that is gone is not needed.
    let without = TrialRequest { without: [7].into(), ..request.clone() };
    let rest = plans(&file, &without).unwrap();
    let to = [1, 2, 4].map(|host| recorder(&rest[host]).drain.unwrap().to.unwrap().to_string());
    assert_eq!(to, ["10.1.0.7:7616", "10.1.0.7:7617", "10.1.0.7:7618"]);
    // Without any, recorders drain into nothing.
    let none = plans(&file, &TrialRequest { without: [6, 7].into(), ..request.clone() }).unwrap();
    assert!([1, 2, 4].iter().all(|&host| recorder(&none[host]).drain.unwrap().to.is_none()));
    let to_null = plans(&file, &TrialRequest { to_null: true, ..request }).unwrap();
    assert!(recorder(&to_null[1]).drain.is_none() && to_null[6].is_none());
}

#[test]
fn a_drain_host_without_an_address_cannot_take_part() {
    let (file, request) = drained("");
    let error = plans(&file, &request).unwrap_err().to_string();
    assert!(error.contains("u: recorders need the address of the drain host"), "{error}");
    // Without a drain in the profile it has no part.
    let without = TrialRequest { profile: Profile { drain: None, ..request.profile.clone() }, ..request };
    assert!(plans(&file, &without).unwrap()[6..].iter().all(Option::is_none));
}
