//! Numbers of VDIF frames across seconds, reference epochs and leap seconds.
use super::*;

fn frame(epoch: u32, second: u32, in_second: u64) -> Frame {
    Frame { station: 1, thread: 0, epoch, second, in_second, stated: None, is_invalid: false }
}

/// Numbers of frames, which are accepted as they come.
fn numbers(seconds: &mut Seconds, frames: &[Frame]) -> Vec<u64> {
    frames
        .iter()
        .map(|frame| {
            let (number, word) = seconds.number(frame);
            seconds.accept(word);
            number.unwrap()
        })
        .collect()
}

#[test]
fn the_reference_epoch_may_change() {
    // The last second of the first half of 2020, and the first one of the second half; also late frames.
    let last = 182 * 86_400 - 1;
    let frames =
        [frame(40, last, 0), frame(40, last, 1), frame(41, 0, 0), frame(41, 1, 1), frame(40, last, 1)];
    let mut seconds = Seconds::new(&frames[0], Some(2), 1);
    let found = numbers(&mut seconds, &frames);
    assert_eq!(found.iter().map(|number| number - found[0]).collect::<Vec<_>>(), [0, 1, 2, 5, 1]);
}

#[test]
fn leap_seconds_at_a_change_of_the_epoch_are_no_loss() {
    let days = 184 * 86_400;
    // Epoch 33 ends with a leap second, which the sender sends or leaves out; epoch 41 with one that is not
    // known.
    for (epoch, last) in [(33, days), (33, days - 1), (41, days)] {
        let frames = [frame(epoch, last, 0), frame(epoch + 1, 0, 0), frame(epoch + 1, 1, 0)];
        let mut seconds = Seconds::new(&frames[0], Some(1), 1);
        let found = numbers(&mut seconds, &frames);
        assert_eq!(
            found.iter().map(|number| number - found[0]).collect::<Vec<_>>(),
            [0, 1, 2],
            "{epoch} {last}"
        );
    }
}

#[test]
fn a_stated_rate_is_confirmed_or_replaced() {
    for (stated, shown, used) in [(100, 100, 100), (100, 97, 100), (100, 50, 50), (100, 120, 120)] {
        let first = Frame { stated: Some(stated), ..frame(40, 7, 0) };
        let mut seconds = Seconds::new(&first, None, 1);
        let of_second: Vec<_> = (0..shown).map(|at| frame(40, 7, at)).collect();
        let found = numbers(&mut seconds, &of_second);
        let (number, word) = seconds.number(&frame(40, 8, 0));
        assert_eq!(number, None, "it waits");
        seconds.wait(Held { timestamp_ns: 0, drops: 0, number: 0, frame: word, bytes: Vec::new() });
        let waited = seconds.settle();
        assert_eq!(waited[0].number, found[0] + used, "{stated} {shown}");
        assert_eq!(seconds.contradiction(), (used != stated).then_some((stated, used)));
    }
}

#[test]
fn times_within_a_second() {
    let seconds = Seconds::new(&frame(40, 7, 0), Some(4), 1);
    assert_eq!([0, 1, 3, 4].map(|at| seconds.within_ns(at)), [0, 250_000_000, 750_000_000, 0]);
}
