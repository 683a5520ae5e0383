//! Parts of hosts in a check.
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
name = "x"
role = "spare"
volumes = ["/c"]
"#;

fn check(streams: Option<u32>) -> Vec<CheckPlan> {
    let profile = streams.map(|streams| keepup_plan::load("romanis").unwrap().with_streams(streams));
    let request = CheckRequest { profile, stall: Duration::from_millis(100) };
    let (plans, notes) = plans(&FleetFile::parse(FILE).unwrap(), &request);
    assert!(notes.is_empty(), "{notes:?}");
    plans
}

#[test]
fn recorders_and_spares_know_where_all_sources_listen() {
    let plans = check(None);
    let address = |name: &str, address: &str| SourceAddress { name: name.into(), address: address.into() };
    for (index, listen, volumes) in [
        (0, Some("10.1.0.1:7614"), 0),
        (1, None, 1),
        (2, None, 2),
        (3, Some("0.0.0.0:7615"), 0),
        (4, None, 1),
    ] {
        let plan = &plans[index];
        assert_eq!((plan.listen.as_deref(), plan.volumes.len()), (listen, volumes), "{index}");
        let sources = match plan.role {
            Role::Source => Vec::new(),
            _ => vec![address("s0", "10.1.0.1:7614"), address("s1", "s1:7615")],
        };
        assert_eq!(plan.sources, sources, "{index}");
        assert_eq!((&plan.profile, plan.stall_ns), (&None, 100_000_000));
    }
}

#[test]
fn streams_are_shared_and_every_share_is_a_profile() {
    let streams = |all: u32| -> Vec<u32> {
        let plans = check(Some(all));
        let own = |name: &str| panic!("the share needs {name}");
        let parse = |plan: &CheckPlan| keepup_plan::parse(plan.profile.as_ref().unwrap(), "share", &own);
        plans.iter().map(|plan| parse(plan).unwrap().streams).collect()
    };
    assert_eq!(streams(7), [4, 4, 3, 3, 4]);
    // Fewer streams than recorders: a recorder that may get none is judged for one.
    assert_eq!(streams(1), [1, 1, 1, 1, 1]);
}
