//! Plans of recorders.
use std::net::Ipv4Addr;

use super::*;

const FILE: &str = r#"
name = "hall"
listen = "10.0.0.1:7450"
[launcher]
preset = "ssh"
[[host]]
name = "s0"
role = "source"
[[host]]
name = "r0"
role = "recorder"
volumes = ["/a"]
data = "10.1.0.1"
[[host]]
name = "r1"
role = "recorder"
volumes = ["/b", "/c"]
data = "10.1.0.1"
[[host]]
name = "x"
role = "spare"
volumes = ["/a"]
data = "10.1.0.2"
"#;

fn request() -> RecordRequest {
    let target = Target::Volumes(vec!["/a".into()]);
    let mut config = RecorderConfig::new((Ipv4Addr::LOCALHOST, 0).into(), target, "n");
    config.placement = PlacementKind::Pinned;
    config.reductions = vec!["streams=0-3 keep=both: spectrum | lz4".parse().unwrap()];
    RecordRequest {
        name: "run-7".to_owned(),
        run: 7,
        metadata: BTreeMap::from([("sample".to_owned(), "quartz".to_owned())]),
        port: 7611,
        settings: RecorderSettings { depth: 3, ..RecorderSettings::of(&config) },
    }
}

#[test]
fn recorders_and_spares_take_part() {
    let plans = plans(&FleetFile::parse(FILE).unwrap(), &request()).unwrap();
    assert!(plans[0].is_none());
    let listen: Vec<String> = plans.iter().flatten().map(|plan| plan.listen.to_string()).collect();
    assert_eq!(listen, ["10.1.0.1:7611", "10.1.0.1:7612", "10.1.0.2:7611"]);
    let plan = plans[2].clone().unwrap();
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<RecordPlan>(&text).unwrap(), plan);
    let config = plan.config(plan.volumes.clone()).unwrap();
    assert_eq!((config.depth, config.run, config.stay), (3, Some(7), true));
    assert_eq!((config.placement, config.volumes()), (PlacementKind::Pinned, 2));
    assert_eq!(config.reductions.len(), 1);
    assert_eq!(config.metadata["sample"], "quartz");
    let single = plans[1].clone().unwrap();
    assert_eq!(single.config(single.volumes.clone()).unwrap().placement, PlacementKind::Free);
}

#[test]
fn ports_that_do_not_exist_are_refused() {
    let file = FleetFile::parse(FILE).unwrap();
    for port in [0, u16::MAX] {
        let refused = plans(&file, &RecordRequest { port, ..request() }).unwrap_err();
        assert!(refused.to_string().contains("there is no port"), "{refused}");
    }
}

#[test]
fn a_recorder_without_an_address_is_refused() {
    let file = FleetFile::parse(&FILE.replace("data = \"10.1.0.2\"", "")).unwrap();
    assert!(plans(&file, &request()).unwrap_err().to_string().contains("x: clients need"));
}
