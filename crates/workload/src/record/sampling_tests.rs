//! Emitted samples: their readings, and the interval of core usage.

use std::sync::Mutex;

use keepup_measure::clock::SystemClock;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn core(busy_ns: u64, idle_ns: u64) -> Vec<CoreTimes> {
    vec![CoreTimes {
        core: 3,
        read_ns: busy_ns + idle_ns,
        user_ns: busy_ns,
        system_ns: 0,
        irq_ns: 0,
        softirq_ns: 0,
        steal_ns: 0,
        idle_ns,
        iowait_ns: 0,
    }]
}

fn kept(samples: &[(Sample, Option<Vec<CoreTimes>>)]) -> Vec<BTreeMap<String, f64>> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&kept);
    let mut context = Context {
        clock: Arc::new(SystemClock),
        stop: Arc::default(),
        sample: Box::new(move |_, values| sink.lock().unwrap().push(values)),
        note: Box::new(|_| {}),
    };
    record_samples(&mut context, samples);
    drop(context);
    Arc::into_inner(kept).unwrap().into_inner().unwrap()
}

#[test]
fn core_usage_covers_the_time_between_readings() {
    let sample = Sample { stall_ns: 7_000_000, ..Sample::default() };
    let kept = kept(&[
        (sample, Some(core(0, 0))),
        (sample, None),
        (sample, Some(core(SECOND_NS, 3 * SECOND_NS))),
        (sample, Some(core(SECOND_NS, 4 * SECOND_NS))),
    ]);
    let core: Vec<Option<f64>> =
        kept.iter().map(|values| values.get("core_3_busy_percent").copied()).collect();
    assert_eq!(core, [None, None, Some(25.0), Some(0.0)]);
    assert!(kept.iter().all(|values| values["stall_ms"] == 7.0));
}

#[test]
fn cores_are_read_at_a_minimum_interval() {
    let mut feed = CoreFeed::default();
    let root = Path::new("/");
    let read: Vec<bool> = [0, 10_000_000, CORES_EVERY_NS - 1, CORES_EVERY_NS, CORES_EVERY_NS + 1]
        .into_iter()
        .map(|now_ns| feed.read(now_ns, root).is_some())
        .collect();
    assert_eq!(read, [true, false, false, true, false]);
}
