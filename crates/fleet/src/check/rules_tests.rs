//! Each rule fires exactly where it should.
use keepup_results::{ClockFacts, DoctorNeeds, HostCheck, HostFacts, InterfaceFacts, PathFacts, VolumeFacts};

use super::*;

const VERSION: &str = "0.1.0";

fn needs(transport: &str, profile: Option<&str>) -> DoctorNeeds {
    DoctorNeeds {
        profile: profile.map(str::to_owned),
        bytes_per_second: 1e9,
        bytes_per_second_peak: 1e9,
        event_bytes: 1e6,
        transport: transport.to_owned(),
        connections: 1,
        run_bytes: None,
        stall_ns: 100_000_000,
    }
}

fn facts() -> HostFacts {
    HostFacts {
        tool_version: VERSION.to_owned(),
        message_version: 1,
        kernel: Some("6.12.1".to_owned()),
        cores: Some(32),
        memory_bytes: Some(1 << 38),
        memlock: Some("unlimited".to_owned()),
        clock: ClockFacts {
            source: Some("tsc".to_owned()),
            is_synchronised: Some(true),
            error_ns_max: Some(100_000),
            programs: Some(vec!["chronyd".to_owned()]),
            hardware_clocks: Vec::new(),
        },
        interfaces: vec![InterfaceFacts {
            name: "eth0".to_owned(),
            mtu: Some(9_000),
            speed_mbit: Some(100_000),
            driver: Some("mlx5_core".to_owned()),
            state: Some("up".to_owned()),
            hardware_clock: None,
        }],
        volumes: Vec::new(),
        paths: Vec::new(),
    }
}

fn host(name: &str, role: &str) -> HostCheck {
    HostCheck {
        host: name.to_owned(),
        role: role.to_owned(),
        needs: Some(needs("udp", None)),
        facts: Some(facts()),
        failure: None,
        clock_offset_ns: Some(-40_000),
        clock_error_ns: Some(100_000),
    }
}

/// A source `cam` and recorders `daq1` and `daq2`, without a finding.
fn fleet() -> Vec<HostCheck> {
    let path = PathFacts {
        source: "cam".to_owned(),
        address: "10.0.0.7:7614".to_owned(),
        failure: None,
        interface: Some("eth0".to_owned()),
        mtu: Some(9_000),
        source_mtu: Some(9_000),
        to_source_bytes: Some(9_000),
        from_source_bytes: Some(9_000),
    };
    let recorder = |name| {
        let mut host = host(name, "recorder");
        let facts = host.facts.as_mut().unwrap();
        facts.paths = vec![path.clone()];
        let volume =
            VolumeFacts { path: "/data".to_owned(), free_bytes: Some(1 << 40), size_bytes: Some(1 << 41) };
        facts.volumes = vec![volume];
        host
    };
    vec![host("cam", "source"), recorder("daq1"), recorder("daq2")]
}

/// Findings that are not fine after a change.
fn found(change: impl FnOnce(&mut [HostCheck])) -> Vec<FleetFinding> {
    let mut hosts = fleet();
    change(&mut hosts);
    let all = judge(&Case { tool_version: VERSION, hosts: &hosts });
    all.into_iter().filter(|found| found.finding.severity != DoctorSeverity::Fine).collect()
}

/// The only finding after a change.
fn only(
    setting: &str,
    severity: DoctorSeverity,
    change: impl FnOnce(&mut [HostCheck]),
) -> (Vec<String>, DoctorFinding) {
    let mut found = found(change);
    assert_eq!(found.len(), 1, "{found:#?}");
    let FleetFinding { hosts, finding } = found.remove(0);
    assert_eq!((finding.setting.as_str(), finding.severity), (setting, severity), "{finding:#?}");
    assert!(!finding.why.is_empty() && !finding.source.is_empty(), "{finding:?}");
    (hosts, finding)
}

fn of(host: &mut HostCheck) -> &mut HostFacts {
    host.facts.as_mut().unwrap()
}

fn path(host: &mut HostCheck) -> &mut PathFacts {
    &mut of(host).paths[0]
}

#[test]
fn a_good_fleet_has_no_finding() {
    let found = found(|_| {});
    assert!(found.is_empty(), "{found:#?}");
    // No path leads from a drain host to a source.
    let mut hosts = fleet();
    hosts.push(host("t0", "drain"));
    let all = judge(&Case { tool_version: VERSION, hosts: &hosts });
    let open = |found: &FleetFinding| found.finding.severity == DoctorSeverity::NotJudged;
    assert!(!all.iter().any(open), "{all:#?}");
}

#[test]
fn nothing_is_fine_that_was_not_read() {
    let mut hosts = fleet();
    for host in &mut hosts {
        (host.clock_offset_ns, host.clock_error_ns) = (None, None);
        let facts = of(host);
        facts.clock = ClockFacts::default();
        facts.interfaces[0].speed_mbit = None;
        facts.volumes.iter_mut().for_each(|volume| volume.free_bytes = None);
        for path in &mut facts.paths {
            (path.mtu, path.source_mtu) = (None, None);
            (path.to_source_bytes, path.from_source_bytes) = (None, None);
        }
    }
    let fine: Vec<_> = judge(&Case { tool_version: VERSION, hosts: &hosts })
        .into_iter()
        .filter(|found| found.finding.severity != DoctorSeverity::NotJudged)
        .map(|found| found.finding.setting)
        .collect();
    // Both were read: versions, and that a connection was possible.
    assert_eq!(fine, ["connection to cam", "connection to cam", "version of keepup"]);
}

#[test]
fn a_host_that_did_not_join_is_harmful() {
    let (hosts, finding) = only("agent", DoctorSeverity::Harmful, |hosts| {
        (hosts[2].facts, hosts[2].needs) = (None, None);
        hosts[2].failure = Some("its program ended".to_owned());
    });
    assert_eq!((hosts, finding.why.as_str()), (vec!["daq2".to_owned()], "its program ended"));
}

#[test]
fn different_versions_are_listed() {
    let (hosts, finding) = only("version of keepup", DoctorSeverity::WorthALook, |hosts| {
        of(&mut hosts[0]).tool_version = "0.0.9".to_owned();
        of(&mut hosts[2]).tool_version = "0.0.9".to_owned();
    });
    assert_eq!((hosts.join(" ").as_str(), finding.value.as_deref()), ("cam daq2", Some("0.0.9")));
}

#[test]
fn a_source_that_cannot_be_reached_is_harmful() {
    let (hosts, finding) = only("connection to cam", DoctorSeverity::Harmful, |hosts| {
        let path = path(&mut hosts[1]);
        path.failure = Some("no route to host".to_owned());
        (path.source_mtu, path.to_source_bytes, path.from_source_bytes) = (None, None, None);
    });
    assert_eq!((hosts, finding.command.as_deref()), (vec!["daq1".to_owned()], Some("ping -c 3 10.0.0.7")));
    assert!(finding.why.contains("firewall for TCP port 7614"), "{finding:?}");
}

#[test]
fn a_path_that_was_not_measured_is_not_judged() {
    let connection = "connection to cam";
    let (hosts, finding) =
        only(connection, DoctorSeverity::NotJudged, |hosts| of(&mut hosts[2]).paths.clear());
    assert_eq!((hosts.join(" ").as_str(), finding.value), ("daq2", None));
    // A source that did not join is harmful by itself, and the paths to it stay open.
    let found = found(|hosts| {
        (hosts[0].facts, hosts[0].needs) = (None, None);
        hosts[0].failure = Some("its program ended".to_owned());
        hosts[1..].iter_mut().for_each(|host| of(host).paths.clear());
    });
    let found: Vec<_> = found.iter().map(|found| (found.hosts.join(" "), found.finding.severity)).collect();
    let open = |host: &str| (host.to_owned(), DoctorSeverity::NotJudged);
    assert_eq!(found, [("cam".to_owned(), DoctorSeverity::Harmful), open("daq1"), open("daq2")]);
}

#[test]
fn a_switch_with_a_smaller_mtu_is_harmful() {
    let of_path = "MTU of the path to cam";
    for (there, back, direction) in [
        (1_500, 9_000, "arrived to the source"),
        (9_000, 1_500, "arrived to the recorder"),
        (1_500, 1_500, "arrived in either direction"),
    ] {
        let (_, finding) = only(of_path, DoctorSeverity::Harmful, |hosts| {
            let path = path(&mut hosts[2]);
            (path.to_source_bytes, path.from_source_bytes) = (Some(there), Some(back));
        });
        assert!(finding.why.contains(direction), "{finding:?}");
        assert_eq!(finding.value.as_deref(), Some("1500 bytes"));
        assert_eq!(finding.command.as_deref(), Some("ping -M do -c 3 -s 8972 10.0.0.7"));
    }
    only(of_path, DoctorSeverity::NotJudged, |hosts| path(&mut hosts[2]).source_mtu = None);
    let (_, finding) = only(of_path, DoctorSeverity::Harmful, |hosts| {
        let path = path(&mut hosts[1]);
        (path.address, path.to_source_bytes) = ("[fd00::7]:7614".to_owned(), None);
    });
    assert_eq!(finding.command.as_deref(), Some("ping -M do -c 3 -s 8952 fd00::7"));
}

#[test]
fn a_smaller_mtu_of_the_recorder_is_harmful_for_udp() {
    let smaller = |transport: &'static str| {
        move |hosts: &mut [HostCheck]| {
            hosts[1].needs = Some(needs(transport, None));
            let path = path(&mut hosts[1]);
            (path.mtu, path.to_source_bytes, path.from_source_bytes) =
                (Some(1_500), Some(1_500), Some(1_500));
        }
    };
    let (_, finding) = only("MTU towards cam", DoctorSeverity::Harmful, smaller("udp"));
    assert_eq!(finding.command.as_deref(), Some("ip link set dev eth0 mtu 9000   # on daq1"));
    only("MTU towards cam", DoctorSeverity::WorthALook, smaller("tcp"));
    let (hosts, _) = only("MTU towards cam", DoctorSeverity::WorthALook, |hosts| {
        let path = path(&mut hosts[1]);
        let small = Some(1_500);
        (path.source_mtu, path.to_source_bytes, path.from_source_bytes) = (small, small, small);
    });
    assert_eq!(hosts.join(" "), "daq1 cam");
}

#[test]
fn loopback_is_larger_than_any_packet() {
    let found = found(|hosts| {
        for host in &mut hosts[1..] {
            let path = path(host);
            (path.mtu, path.source_mtu) = (Some(65_536), Some(65_536));
            (path.to_source_bytes, path.from_source_bytes) = (Some(65_535), Some(65_535));
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn sources_that_are_faster_than_the_recorders_are_noticed() {
    let sum = "sum of link speeds";
    let (hosts, finding) = only(sum, DoctorSeverity::WorthALook, |hosts| {
        of(&mut hosts[1]).interfaces[0].speed_mbit = Some(25_000);
        of(&mut hosts[2]).interfaces[0].speed_mbit = Some(25_000);
    });
    assert_eq!((hosts.join(" ").as_str(), finding.value.as_deref()), ("daq1 daq2", Some("50 Gbit/s")));
    assert!(finding.why.contains("more than 6.25 GB/s"), "{finding:?}");
    let (hosts, _) = only(sum, DoctorSeverity::NotJudged, |hosts| {
        of(&mut hosts[0]).interfaces[0].speed_mbit = None;
        of(&mut hosts[1]).interfaces.clear();
    });
    assert_eq!(hosts.join(" "), "cam daq1");
}

#[test]
fn a_volume_that_is_nearly_full_is_noticed_without_a_profile() {
    let full = |hosts: &mut [HostCheck]| of(&mut hosts[1]).volumes[0].free_bytes = Some(500_000_000);
    let (hosts, finding) = only("/data: free space", DoctorSeverity::WorthALook, full);
    assert_eq!(hosts, ["daq1"]);
    assert!(finding.why.contains("full after 0.5 s"), "{finding:?}");
    // With a profile, the host itself judges the space.
    let found = found(|hosts| {
        full(hosts);
        hosts.iter_mut().for_each(|host| host.needs = Some(needs("udp", Some("csl"))));
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn clocks_that_are_not_synchronised_are_noticed() {
    let clock = "system clock";
    let (_, finding) = only(clock, DoctorSeverity::WorthALook, |hosts| {
        of(&mut hosts[1]).clock.is_synchronised = Some(false);
    });
    assert!(finding.why.contains("chronyd runs, but"), "{finding:?}");
    let (_, finding) = only(clock, DoctorSeverity::WorthALook, |hosts| {
        let clock = &mut of(&mut hosts[1]).clock;
        (clock.is_synchronised, clock.programs) = (Some(false), Some(Vec::new()));
    });
    assert!(finding.why.contains("no program"), "{finding:?}");
    only(clock, DoctorSeverity::NotJudged, |hosts| of(&mut hosts[0]).clock.is_synchronised = None);
}

#[test]
fn clocks_that_differ_are_noticed_if_the_error_permits() {
    let offset = "clock offset to the controller";
    let of_host = |ns, error_ns| {
        move |hosts: &mut [HostCheck]| {
            (hosts[2].clock_offset_ns, hosts[2].clock_error_ns) = (Some(ns), Some(error_ns));
        }
    };
    let (hosts, finding) = only(offset, DoctorSeverity::WorthALook, of_host(-3_000_000, 200_000));
    assert_eq!((hosts, finding.value.as_deref()), (vec!["daq2".to_owned()], Some("-3.000 ± 0.200 ms")));
    only(offset, DoctorSeverity::WorthALook, of_host(i64::MIN, 0));
    only(offset, DoctorSeverity::NotJudged, of_host(900_000, 200_000));
    only(offset, DoctorSeverity::NotJudged, of_host(0, u64::MAX));
    only(offset, DoctorSeverity::NotJudged, |hosts| hosts[0].clock_error_ns = None);
}
