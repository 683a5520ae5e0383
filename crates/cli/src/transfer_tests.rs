//! The progress line has a share, amounts, a rate and the time left.
use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn of(done_bytes: u64, total_bytes: u64) -> Amounts {
    Amounts { done_bytes, known_bytes: 0, total_bytes, is_growing: false }
}

#[test]
fn the_line_states_share_rate_and_time_left() {
    // What an interrupted transfer had sent is no rate.
    let known = Amounts { known_bytes: 12_600_000_000, ..of(14_000_000_000, 28_000_000_000) };
    let text = TransferLine::new("archived").text(known, SECOND);
    assert_eq!(text, "archived 50 %, 14.0 of 28.0 GB, 1.40 GB/s, 10 s left");
}

#[test]
fn an_update_without_a_new_part_has_a_rate() {
    let mut line = TransferLine::new("archived");
    line.text(of(1_000_000_000, 4_000_000_000), SECOND);
    let text = line.text(of(1_000_000_000, 4_000_000_000), SECOND);
    assert_eq!(text, "archived 25 %, 1.0 of 4.0 GB, 500 MB/s, 6 s left");
    let texts: Vec<String> =
        (0..WINDOW).map(|_| line.text(of(1_000_000_000, 4_000_000_000), SECOND)).collect();
    assert_eq!(texts[WINDOW - 1], "archived 25 %, 1.0 of 4.0 GB, 0.00 B/s", "it has stalled");
}

#[test]
fn a_recording_in_progress_has_no_time_left() {
    let mut line = TransferLine::new("drained");
    let growing = Amounts { is_growing: true, ..of(9_000_000_000, 12_000_000_000) };
    assert_eq!(line.text(growing, SECOND), "drained 75 %, 9.0 of 12.0 GB, 9.00 GB/s, recording in progress");
    let ended = line.text(of(10_000_000_000, 12_000_000_000), SECOND);
    assert_eq!(ended, "drained 83 %, 10.0 of 12.0 GB, 5.00 GB/s", "less than a second");
}

#[test]
fn nothing_and_more_than_the_total_are_no_failure() {
    assert_eq!(TransferLine::new("drained").text(of(0, 0), SECOND), "drained 0 %, 0.0 of 0.0 MB, 0.00 B/s");
    let small = TransferLine::new("drained").text(of(13_000_000, 26_300_000), SECOND);
    assert_eq!(small, "drained 49 %, 13.0 of 26.3 MB, 13.0 MB/s, 1.02 s left");
    // A segment that was removed, or a file that is sent again.
    let mut line = TransferLine::new("drained");
    line.text(of(9_000_000_000, 9_000_000_000), SECOND);
    let mut fewer = String::new();
    (0..WINDOW).for_each(|_| fewer = line.text(of(5_000_000_000, 4_000_000_000), SECOND));
    assert_eq!(fewer, "drained 100 %, 5.0 of 5.0 GB, 0.00 B/s");
    let at_once = TransferLine::new("drained").text(of(1_000_000_000, 2_000_000_000), Duration::ZERO);
    assert_eq!(at_once, "drained 50 %, 1.0 of 2.0 GB, 0.00 B/s");
}
