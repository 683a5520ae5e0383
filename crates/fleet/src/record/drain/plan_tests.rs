//! Copies, their hosts and addresses.
use super::*;
use crate::record::{RecordRequest, RecorderSettings, plans};
use keepup_recorder::{RecorderConfig, Target};

/// Two recorders, a spare, a source and these drain hosts.
fn fleet(drains: &str) -> FleetFile {
    let host = |name: &str, role: &str, at: u8| {
        let volumes = if role == "source" { "" } else { "volumes = [\"/data\"]" };
        format!("[[host]]\nname = \"{name}\"\nrole = \"{role}\"\ndata = \"10.0.0.{at}\"\n{volumes}\n")
    };
    let hosts = [host("a", "recorder", 1), host("s", "source", 9), host("b", "recorder", 2)].concat();
    let text = "name = \"hall\"\nlisten = \"127.0.0.1:7650\"\n[launcher]\npreset = \"local\"\n";
    FleetFile::parse(&[text, &hosts, &host("c", "spare", 3), drains].concat()).unwrap()
}

type Planned = (Vec<Option<RecordPlan>>, Result<Vec<Option<DrainPlan>>, FleetError>);

fn planned(file: &FleetFile) -> Planned {
    let target = Target::Volumes(vec!["/data".into()]);
    let mut config = RecorderConfig::new(([127, 0, 0, 1], 0).into(), target, "x");
    (config.intake_threads, config.pool_bytes) = (4, 1 << 30);
    config.reductions = vec!["streams=0: lz4".parse().unwrap()];
    let request = RecordRequest {
        name: "hall-run-4".into(),
        run: 4,
        metadata: BTreeMap::new(),
        port: 7611,
        settings: RecorderSettings::of(&config),
    };
    let mut plans = plans(file, &request).unwrap();
    let drains = drain_plans(file, request.port, &mut plans);
    (plans, drains)
}

fn drain(name: &str, more: &str) -> String {
    format!("[[host]]\nname = \"{name}\"\nrole = \"drain\"\n{more}\n")
}

#[test]
fn without_a_drain_host_nothing_is_copied() {
    let (plans, drains) = planned(&fleet(""));
    assert!(plans.iter().flatten().all(|plan| plan.drain_to.is_none()));
    assert!(drains.unwrap().iter().all(Option::is_none));
}

#[test]
fn recorders_and_spares_are_distributed_over_drain_hosts() {
    let drains =
        [drain("t", "data = \"10.0.0.20\"\nvolumes = [\"/tape\"]"), drain("u", "data = \"10.0.0.21\"")];
    let (plans, drains) = planned(&fleet(&drains.concat()));
    let to = |host: usize| plans[host].as_ref().unwrap().drain_to.unwrap().to_string();
    assert_eq!([to(0), to(2), to(3)], ["10.0.0.20:7611", "10.0.0.21:7611", "10.0.0.20:7612"]);
    assert!(plans[1].is_none());
    let drains = drains.unwrap();
    assert!(drains[..4].iter().all(Option::is_none));
    let copies = |host: usize| drains[host].as_ref().unwrap().copies.as_slice();
    let names: Vec<&str> = copies(4).iter().map(|copy| copy.name.as_str()).collect();
    assert_eq!(names, ["hall-run-4-a", "hall-run-4-c"]);
    assert!(copies(4).iter().all(|copy| copy.volumes == ["/tape"].map(std::path::PathBuf::from)));
    // Events arrive as they were recorded: reduced.
    assert!(copies(4).iter().all(|copy| copy.settings.reductions.is_empty() && copy.run == 4));
    // Events that a recorder takes fit into the memory of its sink.
    let largest = |plan: &RecordPlan| plan.config(vec!["/a".into()]).unwrap().event_bytes_max();
    let recorded = largest(plans[0].as_ref().unwrap());
    assert!(copies(4).iter().all(|copy| largest(copy) == recorded && copy.settings.intake_threads == 1));
    let [only] = copies(5) else { panic!("{drains:?}") };
    assert_eq!((only.name.as_str(), only.volumes.len()), ("hall-run-4-b", 0));
    assert_eq!(only.listen.to_string(), to(2));
}

#[test]
fn a_drain_host_needs_an_address() {
    let (_, drains) = planned(&fleet(&drain("t", "")));
    let error = drains.unwrap_err();
    assert!(error.to_string().contains("t: recorders need the address of the drain host"), "{error}");
}

#[test]
fn sinks_beside_a_recorder_have_the_ports_after_its_own() {
    let (plans, _) = planned(&fleet(&drain("t", "data = \"10.0.0.2\"")));
    let to = [0, 2, 3].map(|host: usize| plans[host].as_ref().unwrap().drain_to.unwrap().to_string());
    assert_eq!(to, ["10.0.0.2:7612", "10.0.0.2:7613", "10.0.0.2:7614"]);
}
