//! Warnings of made-up moments.
use keepup_results::live::{Flow, Margin, Moment, PoolNow, ReductionNow, VolumeNow};

use super::Warnings;
use crate::counters::Counters;

fn quiet() -> Moment {
    Moment {
        pool: PoolNow { bytes: 1000, used_bytes: 100, room_seconds: Some(9.0), ..PoolNow::default() },
        volumes: vec![VolumeNow { path: "/a".into(), full_in_seconds: Some(1e6), ..VolumeNow::default() }],
        margin: Some(Margin { qualified_bytes_per_second: 1e8, used: 0.5, ..Margin::default() }),
        ..Moment::default()
    }
}

#[test]
fn a_recording_that_goes_well_has_no_warning() {
    let mut warnings = Warnings::default();
    assert_eq!(warnings.standing(&quiet()), Vec::<String>::new());
    assert_eq!(warnings.news(&quiet(), &Counters::new(1, 0)), Vec::<String>::new());
}

#[test]
fn the_worst_stands_first() {
    let mut moment = quiet();
    moment.volumes[0].failure = Some("no space".into());
    moment.flow =
        Flow { missing_events: 3, missing: [("volume failed".into(), 3)].into(), ..Flow::default() };
    moment.pool.waiting = true;
    moment.margin.as_mut().unwrap().used = 0.95;
    let warnings = Warnings::default().standing(&moment);
    assert_eq!(
        warnings,
        [
            "/a takes no data any more: no space",
            "3 events are missing: 3 volume failed",
            "the memory is full: sources must wait for the volumes",
            "the rate is 95 % of what this machine was qualified for",
        ]
    );
}

#[test]
fn little_room_is_a_warning_when_the_pool_is_in_use() {
    let mut moment = quiet();
    moment.pool.room_seconds = Some(0.4);
    assert!(Warnings::default().standing(&moment).is_empty(), "a small pool that is empty is no trouble");
    moment.pool.used_bytes = 900;
    assert_eq!(Warnings::default().standing(&moment), ["memory for 0.4 s is left"]);
}

#[test]
fn a_full_memory_is_laid_to_who_has_no_time_left() {
    let mut moment = quiet();
    moment.pool.waiting = true;
    moment.reduction = Some(ReductionNow { busy: vec![0.2, 0.5], ..ReductionNow::default() });
    let standing = |moment: &Moment| Warnings::default().standing(moment);
    assert_eq!(standing(&moment), ["the memory is full: sources must wait for the volumes"]);
    moment.reduction.as_mut().unwrap().busy[1] = 0.99;
    assert_eq!(standing(&moment), ["the memory is full: sources must wait for the reduction"]);
}

#[test]
fn a_stall_and_a_full_disk_are_told_beforehand() {
    let mut moment = quiet();
    moment.volumes[0].stalled_seconds = 2.5;
    moment.volumes[0].full_in_seconds = Some(600.0);
    assert_eq!(
        Warnings::default().standing(&moment),
        ["/a has not answered for 2.5 s", "/a is full in 10 min at this rate"]
    );
}

#[test]
fn a_disk_that_fills_is_news_in_the_same_words_and_once() {
    let (mut warnings, counters) = (Warnings::default(), Counters::new(1, 0));
    let mut moment = quiet();
    let mut news = |full_in_seconds: Option<f64>| {
        moment.volumes[0].full_in_seconds = full_in_seconds;
        let news = warnings.news(&moment, &counters);
        let standing = warnings.standing(&moment);
        assert!(news.iter().all(|told| standing.contains(told)), "{news:?} and {standing:?}");
        news
    };
    assert_eq!(news(Some(1e6)), Vec::<String>::new());
    assert_eq!(news(Some(600.0)), ["/a is full in 10 min at this rate"]);
    // Not again for a rate that varies, or a pause.
    for seconds in [Some(300.0), Some(4000.0), None, Some(3000.0)] {
        assert_eq!(news(seconds), Vec::<String>::new(), "{seconds:?}");
    }
    assert_eq!(news(Some(1e5)), Vec::<String>::new());
    assert_eq!(news(Some(3000.0)), ["/a is full in 50 min at this rate"]);
}

#[test]
fn news_are_said_once_and_again_when_it_gets_worse() {
    let (mut warnings, counters) = (Warnings::default(), Counters::new(1, 0));
    let mut moment = quiet();
    moment.flow.missing_events = 2;
    moment.pool.waiting = true;
    assert_eq!(warnings.news(&moment, &counters).len(), 2);
    assert!(warnings.news(&moment, &counters).is_empty());
    moment.flow.missing_events = 5;
    assert_eq!(warnings.news(&moment, &counters), ["3 events are missing, 5 so far"]);
    moment.pool.waiting = false;
    assert!(warnings.news(&moment, &counters).is_empty());
    moment.pool.waiting = true;
    assert_eq!(warnings.news(&moment, &counters).len(), 1);
}
