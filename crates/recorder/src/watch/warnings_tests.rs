//! Warnings for constructed figures.
use keepup_results::FailedRate;
use keepup_results::live::{Flow, Margin, Moment, PoolNow, ReductionNow, RejectedNow, VolumeNow};

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
fn a_healthy_recording_has_no_warning() {
    let mut warnings = Warnings::default();
    assert_eq!(warnings.current(&quiet()), Vec::<String>::new());
    assert_eq!(warnings.take_new(&quiet(), &Counters::new(1, 1, 0)), Vec::<String>::new());
}

#[test]
fn the_most_severe_warning_comes_first() {
    let mut moment = quiet();
    moment.volumes[0].failure = Some("no space".into());
    moment.flow =
        Flow { missing_events: 3, missing: [("volume failed".into(), 3)].into(), ..Flow::default() };
    moment.pool.waiting = true;
    moment.margin.as_mut().unwrap().used = 0.95;
    let warnings = Warnings::default().current(&moment);
    assert_eq!(
        warnings,
        [
            "/a takes no more data: no space",
            "3 events are missing: 3 volume failed",
            "the memory is full: sources must wait for the volumes",
            "the rate is 95 % of the 100 MB/s that this machine was qualified for",
        ]
    );
}

#[test]
fn rejected_data_are_listed_and_the_list_is_bounded() {
    let mut moment = quiet();
    let row = |number: usize| RejectedNow { text: format!("row {number}"), ..RejectedNow::default() };
    moment.flow.rejected = (0..3).map(row).collect();
    assert_eq!(Warnings::default().current(&moment), ["row 0", "row 1", "row 2"]);
    moment.flow.rejected = (0..300).map(row).collect();
    let warnings = Warnings::default().current(&moment);
    assert_eq!(warnings.len(), 11);
    assert_eq!(warnings[10], "data of 290 more sources or for other reasons are not recorded");
}

#[test]
fn little_free_memory_is_a_warning_when_the_pool_is_in_use() {
    let mut moment = quiet();
    moment.pool.room_seconds = Some(0.4);
    assert!(Warnings::default().current(&moment).is_empty(), "a small pool that is empty is no trouble");
    moment.pool.used_bytes = 900;
    assert_eq!(Warnings::default().current(&moment), ["free memory bridges only 0.4 s"]);
}

#[test]
fn a_full_memory_names_the_bottleneck() {
    let mut moment = quiet();
    moment.pool.waiting = true;
    moment.reduction = Some(ReductionNow { busy: vec![0.2, 0.5], ..ReductionNow::default() });
    let current = |moment: &Moment| Warnings::default().current(moment);
    assert_eq!(current(&moment), ["the memory is full: sources must wait for the volumes"]);
    moment.reduction.as_mut().unwrap().busy[1] = 0.99;
    assert_eq!(current(&moment), ["the memory is full: sources must wait for the reduction"]);
}

#[test]
fn a_stall_and_a_nearly_full_disk_are_warnings() {
    let mut moment = quiet();
    moment.volumes[0].stalled_seconds = 2.5;
    moment.volumes[0].full_in_seconds = Some(600.0);
    assert_eq!(
        Warnings::default().current(&moment),
        ["/a has not answered for 2.5 s", "/a is full in 10 min at this rate"]
    );
}

#[test]
fn a_nearly_full_disk_is_reported_once() {
    let (mut warnings, counters) = (Warnings::default(), Counters::new(1, 1, 0));
    let mut moment = quiet();
    let mut news = |full_in_seconds: Option<f64>| {
        moment.volumes[0].full_in_seconds = full_in_seconds;
        let news = warnings.take_new(&moment, &counters);
        let current = warnings.current(&moment);
        assert!(news.iter().all(|warning| current.contains(warning)), "{news:?} and {current:?}");
        news
    };
    assert_eq!(news(Some(1e6)), Vec::<String>::new());
    assert_eq!(news(Some(600.0)), ["/a is full in 10 min at this rate"]);
    // Not again for a rate that varies, or after a pause.
    for seconds in [Some(310.0), Some(4000.0), None, Some(3000.0)] {
        assert_eq!(news(seconds), Vec::<String>::new(), "{seconds:?}");
    }
    // Much earlier than announced.
    assert_eq!(news(Some(120.0)), ["/a is full in 2 min at this rate"]);
}

#[test]
fn a_forecast_that_was_wrong_is_taken_back() {
    let (mut warnings, counters) = (Warnings::default(), Counters::new(1, 1, 0));
    let mut moment = quiet();
    let mut news = |full_in_seconds: f64| {
        moment.volumes[0].full_in_seconds = Some(full_in_seconds);
        warnings.take_new(&moment, &counters)
    };
    assert_eq!(news(600.0), ["/a is full in 10 min at this rate"]);
    assert_eq!(news(36_000.0), ["/a fills more slowly than announced: full in 10.0 h at this rate"]);
    assert_eq!(news(36_000.0), Vec::<String>::new());
    assert_eq!(news(3000.0), ["/a is full in 50 min at this rate"]);
}

#[test]
fn volumes_on_one_disk_have_one_forecast() {
    let (mut warnings, counters) = (Warnings::default(), Counters::new(3, 1, 0));
    let mut moment = quiet();
    let volume = |path: &str| VolumeNow {
        path: path.to_owned(),
        full_in_seconds: Some(600.0),
        ..moment.volumes[0].clone()
    };
    moment.volumes = ["/a", "/b", "/c"].map(volume).to_vec();
    warnings.set_devices(vec![Some(1), Some(2), Some(1)]);
    let expected = ["/a, /c is full in 10 min at this rate", "/b is full in 10 min at this rate"];
    assert_eq!(warnings.take_new(&moment, &counters), expected);
    assert_eq!(warnings.current(&moment), expected);
}

#[test]
fn a_warning_is_repeated_only_when_it_gets_worse() {
    let (mut warnings, counters) = (Warnings::default(), Counters::new(1, 1, 0));
    let mut moment = quiet();
    moment.flow.missing_events = 2;
    moment.pool.waiting = true;
    assert_eq!(warnings.take_new(&moment, &counters).len(), 2);
    assert!(warnings.take_new(&moment, &counters).is_empty());
    moment.flow.missing_events = 5;
    assert_eq!(warnings.take_new(&moment, &counters), ["3 events are missing, 5 so far"]);
    moment.pool.waiting = false;
    assert!(warnings.take_new(&moment, &counters).is_empty());
    moment.pool.waiting = true;
    assert_eq!(warnings.take_new(&moment, &counters).len(), 1);
}

#[test]
fn a_rate_in_a_worse_range_is_reported_once() {
    let (mut warnings, counters) = (Warnings::default(), Counters::new(1, 1, 0));
    let mut moment = quiet();
    moment.margin.as_mut().unwrap().failed_above = Some(FailedRate {
        bytes_per_second: 1.2e8,
        seconds: 30.0,
        lost_events: 3,
        condition: "events were lost".into(),
    });
    let mut news = |used: f64| {
        moment.margin.as_mut().unwrap().used = used;
        let news = warnings.take_new(&moment, &counters);
        let current = warnings.current(&moment);
        assert!(news.iter().all(|warning| current.contains(warning)), "{news:?} and {current:?}");
        news
    };
    for (used, words) in [(0.95, "95 %"), (1.1, "not proven"), (1.3, "this machine failed")] {
        let found = news(used);
        assert!(found.len() == 1 && found[0].contains(words), "{used}: {found:?}");
    }
    // Not again for a rate that varies about the limits.
    for used in [1.1, 1.3, 0.85, 0.95, 1.3] {
        assert_eq!(news(used), Vec::<String>::new(), "{used}");
    }
    assert_eq!(news(0.5), Vec::<String>::new());
    assert_eq!(news(1.3).len(), 1);
}
