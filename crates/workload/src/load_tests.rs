//! Each load keeps its rate, reports it, and removes its files.
use std::sync::Arc;

use keepup_error::Diagnostic as _;

use super::report::Report;
use super::*;
use crate::testing::context;

/// Writer that collects reports and sets the stop flag after some lines.
struct StopAfterLines {
    log: Vec<u8>,
    lines_left: u32,
    stop: Arc<AtomicBool>,
}

impl std::io::Write for StopAfterLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.log.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.lines_left = self.lines_left.saturating_sub(1);
        if self.lines_left == 0 {
            self.stop.store(true, Ordering::Release);
        }
        Ok(())
    }
}

/// The first reports of a worker.
fn reports(text: &str) -> Vec<Report> {
    let spec: LoadSpec = text.parse().unwrap();
    let mut context = context();
    let mut hearer = StopAfterLines { log: Vec::new(), lines_left: 8, stop: Arc::clone(&context.stop) };
    run_child(&spec, None, "load-test", &mut context, &mut hearer).unwrap();
    let lines = String::from_utf8(hearer.log).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_kind_works_and_never_runs_ahead_of_its_rate() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path().display();
    for (spec, rate) in [
        ("net=20MB/s".to_owned(), 20e6),
        ("memory=200MB/s".to_owned(), 200e6),
        ("cpu=0.2".to_owned(), 0.2e9),
        (format!("disk=10MB/s@{here},size=16 MiB"), 10e6),
        (format!("disk=10MB/s@{here},write,size=16 MiB"), 10e6),
    ] {
        let mut kept = |_| {
            let found = reports(&spec);
            let Report::Begun { t_ns: begun_ns, .. } = found[0] else { panic!("{spec}: {found:?}") };
            let (mut before, mut is_kept) = (0, true);
            for report in &found[1..] {
                let Report::Done { t_ns, amount, .. } = *report else { panic!("{spec}: {found:?}") };
                let due = t_ns.saturating_sub(begun_ns) as f64 * 1e-9 * rate;
                assert!(amount >= before, "{spec}: {found:?}");
                // One piece may be in flight, and a thread's CPU clock is read slightly later.
                is_kept &= amount as f64 <= due + rate * 0.03;
                before = amount;
            }
            is_kept && before > 0
        };
        // A suspended virtual CPU may count as work, and a disk may stall.
        assert!((0..3).any(&mut kept), "{spec}: ahead of its rate, or nothing done");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "{spec}");
    }
}

#[test]
fn a_load_that_cannot_be_had_says_why() {
    let spec: LoadSpec = "disk=10MB/s@/nowhere/at/all".parse().unwrap();
    let mut out = Vec::new();
    let failed = run_child(&spec, None, "load-test", &mut context(), &mut out);
    assert!(matches!(failed, Err(WorkloadError::System { .. })), "{failed:?}");
    let report: Report = serde_json::from_slice(&out).unwrap();
    assert!(matches!(&report, Report::Failed { why } if why.contains("/nowhere/at/all")), "{report:?}");
    let remote: LoadSpec = "net=1MB/s@127.0.0.1:1".parse().unwrap();
    let failed = run_child(&remote, None, "load-test", &mut context(), &mut Vec::new());
    assert!(failed.unwrap_err().hint().unwrap().starts_with("set KEEPUP_NET_TOKEN"));
    let token = keepup_peer::Token::new("a-token-for-tests").unwrap();
    let credentials = Some(crate::net::Credentials { token, random: || Ok("0".repeat(32)) });
    let failed = run_child(&remote, credentials, "load-test", &mut context(), &mut Vec::new());
    assert!(failed.unwrap_err().hint().unwrap().starts_with("start a server on the other machine"));
}

#[test]
fn the_cost_of_loads_is_known_in_advance() {
    let specs = ["cpu=1", "disk=10MB/s@a,write,size=1 GiB", "disk=10MB/s@b,size=2 GiB"];
    let plan = LoadPlan { program: "keepup".into(), specs: specs.map(|s| s.parse().unwrap()).into() };
    let cost = plan.footprint(Duration::from_secs(10));
    let gib = |n: u64| n << 30;
    assert_eq!(cost.space_bytes, [("a".into(), gib(1)), ("b".into(), gib(2))].into());
    assert_eq!(cost.bytes_written, [("a".into(), gib(1) + 100_000_000), ("b".into(), gib(2))].into());
    let summary = plan.summary(Some(Duration::from_secs(10))).unwrap();
    assert!(
        summary.contains("cpu=1") && summary.contains("hold 3.2 GB and write at most 3.3 GB"),
        "{summary}"
    );
    assert!(plan.summary(None).unwrap().contains("until the end"));
    assert_eq!(LoadPlan::default().summary(None), None);
    assert!(matches!(plan.check(&BTreeMap::new()), Err(WorkloadError::Volume { .. })));
}
