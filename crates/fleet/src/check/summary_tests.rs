//! Results of hosts together, also malformed ones.
use keepup_results::{ClockFacts, DoctorFinding, DoctorNeeds, DoctorSeverity, HostFacts};

use super::*;

const FILE: &str = r#"
name = "hall"
listen = "10.0.0.1:7450"
launcher = { preset = "ssh" }
host = [
    { name = "a", role = "recorder", volumes = ["/a"] },
    { name = "b", role = "recorder", volumes = ["/a"] },
    { name = "c", role = "spare", volumes = ["/a"] },
]
"#;

fn finding(severity: DoctorSeverity, why: &str) -> DoctorFinding {
    DoctorFinding {
        severity,
        setting: "net.core.rmem_max".to_owned(),
        value: Some("212992".to_owned()),
        wanted: Some("100663296".to_owned()),
        why: why.to_owned(),
        source: "socket(7)".to_owned(),
        command: None,
    }
}

fn end(findings: Vec<DoctorFinding>) -> HostEnd {
    let needs = DoctorNeeds {
        profile: None,
        bytes_per_second: 1e9,
        bytes_per_second_peak: 1e9,
        event_bytes: 1e6,
        transport: "udp".to_owned(),
        connections: 1,
        run_bytes: None,
        stall_ns: 0,
    };
    let facts = HostFacts {
        tool_version: "1.0.0".to_owned(),
        message_version: 1,
        kernel: None,
        cores: None,
        memory_bytes: None,
        memlock: None,
        clock: ClockFacts::default(),
        interfaces: Vec::new(),
        volumes: Vec::new(),
        paths: Vec::new(),
    };
    let outcome = serde_json::to_string(&HostOutcome { needs, facts, findings }).unwrap();
    HostEnd { outcome: Ok(outcome), clock: Some(Offset { ns: 5, error_ns: 7 }) }
}

#[test]
fn equal_findings_of_hosts_are_combined_and_the_worst_comes_first() {
    let file = FleetFile::parse(FILE).unwrap();
    let common = || finding(DoctorSeverity::WorthALook, "too small");
    let ends = [
        end(vec![common(), finding(DoctorSeverity::Fine, "enough")]),
        end(vec![common(), finding(DoctorSeverity::Harmful, "far too small")]),
        end(vec![finding(DoctorSeverity::WorthALook, "too small for a spare")]),
    ];
    let judged = summary(&file, &ends, "1.0.0");
    let of_rule = |found: &&FleetFinding| found.finding.setting == "net.core.rmem_max";
    let found: Vec<(String, &str)> = judged
        .findings
        .iter()
        .filter(of_rule)
        .map(|found| (found.hosts.join(" "), found.finding.why.as_str()))
        .collect();
    let wanted =
        [("b", "far too small"), ("a b", "too small"), ("c", "too small for a spare"), ("a", "enough")];
    assert_eq!(found, wanted.map(|(hosts, why)| (hosts.to_owned(), why)));
    assert!(judged.findings.is_sorted_by_key(|found| found.finding.severity));
    let host = &judged.hosts[2];
    assert_eq!((host.host.as_str(), host.role.as_str()), ("c", "spare"));
    assert_eq!((host.clock_offset_ns, host.clock_error_ns), (Some(5), Some(7)));
}

#[test]
fn a_host_without_a_readable_result_is_a_finding() {
    let file = FleetFile::parse(FILE).unwrap();
    let ends = [
        end(Vec::new()),
        HostEnd { outcome: Ok("{\"needs\":".to_owned()), clock: None },
        HostEnd { outcome: Err("the host was lost".to_owned()), clock: None },
    ];
    let judged = summary(&file, &ends, "1.0.0");
    let harmful: Vec<_> =
        judged.findings.iter().filter(|found| found.finding.severity == DoctorSeverity::Harmful).collect();
    assert_eq!(harmful.len(), 2, "{harmful:#?}");
    assert_eq!((harmful[0].hosts.join(" ").as_str(), judged.hosts[1].facts.is_none()), ("b", true));
    assert!(harmful[0].finding.why.contains("malformed result: EOF"), "{harmful:#?}");
    assert_eq!(harmful[1].finding.why, "the host was lost");
}
