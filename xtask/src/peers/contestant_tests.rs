//! The figures of one run, by hand.

use super::*;

#[test]
fn figures_are_per_second_and_per_gigabyte() {
    let run = Run {
        phase: String::new(),
        bytes: 2_000_000_000,
        events: Some(1_000_000),
        seconds: 4.0,
        accepted: Some(1e9),
        cpu_ns: Some(600_000_000),
        cpu_before_ns: Some(200_000_000),
        billed_ns: Some(300_000_000),
        cached_bytes: Some(-3_000_000),
        sender_cpu_ns: Some(1_000_000_000),
        resident_bytes_max: Some(5_000_000),
        span_error: Some(0.001),
        lateness: Some(Lateness { p50_ns: 30, p99_ns: 2500, max_ns: 9000 }),
    };
    assert_eq!(Figure::Rate.of(&run), Some(500.0));
    assert_eq!(Figure::Accepted.of(&run), Some(1000.0));
    assert_eq!(Figure::Events.of(&run), Some(0.25));
    assert_eq!(Figure::Operations.of(&run), Some(250_000.0));
    assert_eq!(Figure::Cpu.of(&run), Some(0.3));
    assert_eq!(Figure::Cached.of(&run), Some(-3.0));
    assert_eq!(Figure::CpuMs.of(&run), Some(300.0));
    assert_eq!(Figure::BilledMs.of(&run), Some(150.0));
    assert_eq!(Figure::BilledShare.of(&run), Some(0.5));
    assert_eq!(Figure::CpuRunning.of(&run), Some(0.2));
    assert_eq!(Figure::SenderCpu.of(&run), Some(0.5));
    assert_eq!(Figure::Memory.of(&run), Some(5.0));
    assert_eq!(Figure::RequestCpu.of(&run), Some(0.3));
    assert_eq!(Figure::SpanError.of(&run), Some(0.1));
    let late = [Figure::LateP50, Figure::LateP99, Figure::LateMax].map(|figure| figure.of(&run));
    assert_eq!(late, [Some(0.03), Some(2.5), Some(9.0)]);
}

#[test]
fn what_was_not_measured_is_no_figure() {
    let run = Run { bytes: 1, seconds: 1.0, ..Run::default() };
    for figure in [
        Figure::Accepted,
        Figure::Events,
        Figure::Operations,
        Figure::Cpu,
        Figure::CpuRunning,
        Figure::CpuMs,
        Figure::BilledMs,
        Figure::BilledShare,
        Figure::SenderCpu,
        Figure::Memory,
        Figure::RequestCpu,
        Figure::SpanError,
        Figure::LateMax,
    ] {
        assert_eq!(figure.of(&run), None, "{figure:?}");
    }
    assert_eq!(Figure::Rate.of(&Run::default()), None, "nothing in no time");
    let seeks = Run { events: Some(8), seconds: 2.0, billed_ns: Some(1), ..Run::default() };
    assert_eq!(
        [Figure::Operations, Figure::Rate, Figure::BilledMs].map(|f| f.of(&seeks)),
        [Some(4.0), None, None]
    );
}
