//! Messages about a source survive a round trip; values out of bounds and wrong counts are refused.
use keepup_stream::ledger::Count;
use keepup_stream::source::{Burst, EventSize, Protocol, Rate};
use keepup_stream::wire::ElementType;
use proptest::prelude::*;

use super::*;
use crate::net::wire::{MESSAGE_BYTES_MAX, Message, read, write};

fn plan() -> SourcePlan {
    SourcePlan {
        duration: Some(Duration::from_secs(1)),
        ..SourcePlan::new(EventSize::Fixed(4096), Rate::EventsPerSecond(100.0))
    }
}

fn end(streams: Vec<StreamReport>) -> SourceEnd {
    let mut report = SourceReport::empty(false).unwrap();
    report.streams = streams;
    (report.started_unix_ns, report.elapsed_ns) = (1_000, 50);
    SourceEnd::new(&report, 900, None)
}

fn stream(due: u64, sent: u64, lost: u64) -> StreamReport {
    let count = |events| Count { events, bytes: events * 10 };
    StreamReport {
        id: 0,
        due: count(due),
        sent: count(sent),
        lost: count(lost),
        first_sequence: 0,
        next_sequence: due,
    }
}

/// Numbers of few digits: a number of 17 digits may change in its last one, which no rate needs.
fn any_number() -> impl Strategy<Value = f64> {
    any::<u16>().prop_map(|number| f64::from(number) / 8.0)
}

fn any_size() -> impl Strategy<Value = EventSize> {
    prop_oneof![
        any::<u64>().prop_map(EventSize::Fixed),
        any::<(u64, u64)>().prop_map(|(min, max)| EventSize::Uniform { min, max }),
        (any::<u64>(), any_number(), any::<u64>()).prop_map(|(median, sigma, max)| EventSize::LogNormal {
            median,
            sigma,
            max
        }),
    ]
}

fn any_plan() -> impl Strategy<Value = SourcePlan> {
    let rate = prop_oneof![Just(Rate::Max), any_number().prop_map(Rate::EventsPerSecond)];
    let burst = prop::option::of(any::<(u32, u32)>().prop_map(|(on, off)| Burst {
        on: Duration::from_nanos(on.into()),
        off: Duration::from_nanos(off.into()),
    }));
    let time = prop::option::of(any::<u64>().prop_map(Duration::from_millis));
    let lists = (prop::collection::vec(any::<u64>(), 0..4), prop::collection::vec(0usize..4096, 0..4));
    let counts = (any::<u32>(), any::<u32>(), prop::option::of(any::<u64>()), any::<u64>());
    (any_size(), rate, burst, time, lists, counts).prop_map(|(size, rate, burst, duration, lists, counts)| {
        SourcePlan {
            burst,
            duration,
            shape: lists.0,
            cpus: lists.1,
            streams: counts.0,
            connections: counts.1,
            events: counts.2,
            seed: counts.3,
            element: ElementType::F32,
            ..SourcePlan::new(size, rate)
        }
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    let request = |request| Message::Source { request: Box::new(request) };
    let answer = |answer| Message::SourceAnswer { answer: Box::new(answer) };
    let requests = prop_oneof![
        Just(SourceRequest::Describe),
        Just(SourceRequest::Run),
        Just(SourceRequest::Stop),
        any_plan().prop_map(|plan| SourceRequest::Open { plan }),
        (any_plan(), any::<u16>()).prop_map(|(plan, port)| SourceRequest::Start { plan, port }),
        (any_plan(), any::<u32>())
            .prop_map(|(plan, ms)| SourceRequest::Ceiling { plan, time: Duration::from_millis(ms.into()) }),
    ];
    let machine = ("[a-z]{0,20}", prop::option::of("[a-z]{0,20}"), prop::option::of(any::<u64>()));
    let answers = prop_oneof![
        any_number().prop_map(|bytes_per_second| SourceAnswer::Ceiling { bytes_per_second }),
        any::<[u64; 3]>().prop_map(|[t_ns, due_bytes, blocked_ns]| SourceAnswer::Progress {
            progress: SourceProgress { t_ns, due_bytes, blocked_ns, ..SourceProgress::default() }
        }),
        any::<u16>().prop_map(|port| SourceAnswer::Waiting { port }),
        "[a-z]{0,20}".prop_map(|why| SourceAnswer::NoRecorder { why }),
        machine.prop_map(|(host, cpu, cores)| SourceAnswer::Machine {
            machine: SourceMachine { host, cpu, cores, tool_version: "1".into() }
        }),
        (0u64..1 << 40, 0u64..1 << 40)
            .prop_map(|(sent, lost)| SourceAnswer::End { end: end(vec![stream(sent + lost, sent, lost)]) }),
    ];
    prop_oneof![requests.prop_map(request), answers.prop_map(answer)]
}

proptest! {
    #[test]
    fn messages_round_trip(message in any_message()) {
        let mut bytes = Vec::new();
        write(&mut bytes, &message).unwrap();
        let back = read(&mut bytes.as_slice(), MESSAGE_BYTES_MAX).unwrap();
        prop_assert_eq!(back, Some(message));
    }

    #[test]
    fn a_checked_plan_has_bounds(plan in any_plan(), port in any::<u16>()) {
        let request = SourceRequest::Start { plan: plan.clone(), port };
        if request.check().is_ok() {
            prop_assert!(port > 0 && plan.connections <= 64 && plan.streams < 65_536);
            prop_assert!(plan.duration.is_none_or(|duration| duration <= SCHEDULE_MAX));
        }
    }
}

#[test]
fn requests_out_of_bounds_are_refused() {
    let start = |plan, port| SourceRequest::Start { plan, port };
    let ceiling = |ms| SourceRequest::Ceiling { plan: plan(), time: Duration::from_millis(ms) };
    let open = |plan| SourceRequest::Open { plan };
    let images = |plan: SourcePlan| plan.in_protocol(Protocol::PvAccess);
    for good in [
        start(plan(), 7611),
        open(images(plan())),
        ceiling(1000),
        SourceRequest::Describe,
        SourceRequest::Run,
        SourceRequest::Stop,
    ] {
        assert_eq!(good.check(), Ok(()), "{good:?}");
    }
    let endless = SourcePlan { duration: Some(Duration::MAX), ..plan() };
    let crowded = SourcePlan { connections: 65, streams: 65, ..plan() };
    for (bad, words) in [
        (start(plan(), 0), "port"),
        (start(images(plan()), 7611), "as pvaccess waits"),
        (open(plan()), "as keepup connects"),
        (open(images(endless.clone())), "7 days"),
        (open(SourcePlan { streams: 2, ..images(plan()) }), "has one"),
        (start(endless, 7611), "7 days"),
        (start(crowded, 7611), "65 connections"),
        (ceiling(0), "above 0"),
        (ceiling(61_000), "60 s"),
    ] {
        let why = bad.check().unwrap_err();
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn a_report_starts_on_the_clients_clock() {
    let end = end(vec![stream(7, 5, 2), stream(1, 1, 0)]);
    assert_eq!(end.lead_ns, 100);
    let report = end.report(5_000).unwrap();
    assert_eq!((report.started_unix_ns, report.ended_unix_ns), (5_000, 5_050));
    assert_eq!(report.total(|s| s.due), report.total(|s| s.sent) + report.total(|s| s.lost));
    assert_eq!(report.total(|s| s.lost).events, 2);
}

#[test]
fn counts_that_do_not_add_up_are_refused() {
    let why = end(vec![stream(7, 5, 2), stream(7, 5, 1)]).report(0).unwrap_err();
    assert!(why.contains("do not add up"), "{why}");
}

/// The fuzz target starts from this conversation.
#[test]
fn the_stored_conversation_is_understood() {
    let bytes = include_bytes!("../../../../../fuzz/seeds/net_wire/source");
    assert_eq!(crate::net::conversation(bytes, true), 12);
    let request = read(&mut bytes.as_slice(), MESSAGE_BYTES_MAX).unwrap();
    assert_eq!(request, Some(Message::Source { request: Box::new(SourceRequest::Describe) }));
}
