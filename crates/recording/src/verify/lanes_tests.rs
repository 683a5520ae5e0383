//! Each volume is read by one thread, and by more if the processor is the limit.
use super::*;

/// Jobs that can be given now.
fn available(lanes: &Lanes) -> Vec<usize> {
    std::iter::from_fn(|| lanes.lock().give()).collect()
}

#[test]
fn each_volume_is_read_by_one_thread() {
    let lanes = Lanes::new(vec![0, 1, 0, 1, 1]);
    assert_eq!(available(&lanes), [0, 1]);
    lanes.end(1, 0.9);
    assert_eq!(available(&lanes), [3]);
    lanes.end(0, 0.9);
    lanes.end(3, 0.9);
    assert_eq!(available(&lanes), [2, 4]);
    assert!(lanes.next().is_none());
}

#[test]
fn a_volume_faster_than_the_processor_is_read_by_more() {
    let lanes = Lanes::new(vec![0; 10]);
    assert_eq!(available(&lanes), [0]);
    lanes.end(0, 0.0);
    assert_eq!(available(&lanes), [1, 2]);
    lanes.end(1, 0.05);
    assert_eq!(available(&lanes), [3, 4], "two more beside the one");
    // The disk is the limit again.
    lanes.end(2, 0.8);
    assert_eq!(available(&lanes), [] as [usize; 0]);
    lanes.end(3, 0.3);
    assert_eq!(available(&lanes), [5]);
}

#[test]
fn a_thread_waits_for_a_volume() {
    let lanes = Lanes::new(vec![0, 0]);
    let first = lanes.next().unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| lanes.next().map(|job| job.number));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(first.number == 0 && !other.is_finished());
        drop(first);
        assert_eq!(other.join().unwrap(), Some(1));
    });
}
