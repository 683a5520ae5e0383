//! Stalls in samples, and times of the first events.
use super::*;

fn sample(t_s: f64, due_bytes: u64, written_bytes: u64) -> Sample {
    Sample { t_s, due_bytes, written_bytes, ..Sample::default() }
}

#[test]
fn a_stall_is_a_time_in_which_something_waited_and_nothing_was_written() {
    assert_eq!(longest_stall(&[]), None);
    let idle = [sample(0.0, 0, 0), sample(1.0, 0, 0), sample(2.0, 5, 5)];
    assert_eq!(longest_stall(&idle), Some(Duration::ZERO), "nothing was due");
    let stalled = [sample(0.0, 5, 5), sample(1.0, 9, 5), sample(3.0, 20, 5), sample(4.0, 20, 20)];
    assert_eq!(longest_stall(&stalled), Some(Duration::from_secs(3)));
}

#[test]
fn moments_count_from_the_schedule_and_without_disks_nothing_is_durable() {
    let moment = |t_ns| Some(Moment { t_ns, events: 7, bytes: 70 });
    let first =
        First { events: 5, received: moment(3_000_000_000), durable: moment(5_000_000_000), cpu_ns: 1 };
    let found = first_events(&first, 1_000_000_000, false).unwrap();
    assert_eq!((found.events, found.received.seconds), (5, 2.0));
    assert_eq!(found.durable.map(|moment| moment.bytes_per_second()), Some(Some(17.5)));
    assert_eq!(first_events(&first, 0, true).unwrap().durable, None);
    assert_eq!(first_events(&First { received: None, ..first }, 0, false), None, "there were fewer");
}
