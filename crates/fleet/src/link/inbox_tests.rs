//! The latest message of each sender, in order of arrival.
use super::*;

const NOW: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(600);

#[test]
fn only_the_latest_message_of_a_sender_waits() {
    let inbox = Inbox::default();
    for (sender, message) in [(1, "a"), (2, "b"), (1, "c")] {
        inbox.push((0, sender), message);
    }
    inbox.push((1, 1), "d");
    assert_eq!([inbox.pop(NOW), inbox.pop(NOW), inbox.pop(NOW)], [Some("b"), Some("c"), Some("d")]);
    assert_eq!(inbox.pop(NOW), None);
}

#[test]
fn a_flood_takes_one_place() {
    let inbox = Inbox::default();
    inbox.push((0, 7), 0);
    (0..100_000).for_each(|n| inbox.push((0, 1), n));
    assert_eq!([inbox.pop(NOW), inbox.pop(NOW), inbox.pop(NOW)], [Some(0), Some(99_999), None]);
}

#[test]
fn a_wait_ends_with_a_message_or_when_it_is_woken() {
    let inbox = Inbox::<u8>::default();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| inbox.pop(LONG));
        inbox.push((0, 0), 3);
        assert_eq!(waiting.join().unwrap(), Some(3));
        let waiting = scope.spawn(|| inbox.pop(LONG));
        inbox.wake();
        assert_eq!(waiting.join().unwrap(), None);
    });
    inbox.wake();
    assert_eq!(inbox.pop(LONG), None, "also if nobody waited yet");
}
