//! When the source is stopped.
use super::*;

fn sample(t_s: f64, lost_bytes: u64) -> Sample {
    Sample { t_s, lost_bytes, ..Sample::default() }
}

#[test]
fn the_source_ends_a_while_after_its_first_loss() {
    let mut cut_off = CutOff::new(Duration::from_secs(2), Arc::default());
    let stop = cut_off.source_stop();
    let mut is_stopped_at = |t_s, lost_bytes| {
        cut_off.observe(&sample(t_s, lost_bytes));
        stop.load(Ordering::Acquire)
    };
    assert!(!is_stopped_at(0.0, 0) && !is_stopped_at(10.0, 0));
    // The stall that caused the loss may last longer: its length is wanted.
    assert!(!is_stopped_at(10.5, 1) && !is_stopped_at(12.4, 9));
    assert!(is_stopped_at(12.5, 9));
}

#[test]
fn a_stopped_run_stops_the_source() {
    let run_stop = Arc::new(AtomicBool::new(false));
    let mut cut_off = CutOff::new(Duration::from_secs(2), Arc::clone(&run_stop));
    let stop = cut_off.source_stop();
    cut_off.observe(&sample(1.0, 0));
    assert!(!stop.load(Ordering::Acquire));
    run_stop.store(true, Ordering::Release);
    cut_off.observe(&sample(1.1, 0));
    assert!(stop.load(Ordering::Acquire));
}
