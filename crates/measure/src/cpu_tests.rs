//! CPU clocks count own work, and other threads' work only where they should.

use super::*;

/// Uses CPU time on the calling thread, measured by that thread's clock.
fn burn_ns(work_ns: u64) -> u64 {
    let start_ns = thread_cpu_ns();
    while thread_cpu_ns() - start_ns < work_ns {}
    thread_cpu_ns() - start_ns
}

#[test]
fn the_process_is_billed_for_a_thread_that_has_ended() {
    let (process, own_ns) = (ProcessCpu::now(), thread_cpu_ns());
    let burnt_ns = std::thread::spawn(|| burn_ns(5_000_000)).join().unwrap();
    assert!(ProcessCpu::now().since_ns(process) >= burnt_ns);
    assert!(thread_cpu_ns() >= own_ns);
}

#[test]
fn a_later_reading_before_an_earlier_one_is_nothing() {
    assert_eq!(ProcessCpu { ns: 3 }.since_ns(ProcessCpu { ns: 5 }), 0);
}

#[test]
fn ticks_become_nanoseconds() {
    assert_eq!(ticks_to_ns(3, 100), 30_000_000);
    assert_eq!(ticks_to_ns(3, 0), 3_000_000_000);
}
