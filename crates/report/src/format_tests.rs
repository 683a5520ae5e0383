//! Bars and shortened texts.

use super::{bar, height, shorten};

#[test]
fn bars_never_leave_their_width_nor_hide_something() {
    assert_eq!(bar(1.0, 2.0, 10), "█████");
    assert_eq!(bar(3.0, 2.0, 10).chars().count(), 10);
    assert_eq!(bar(0.001, 2.0, 10), "█");
    assert_eq!(bar(0.0, 2.0, 10), "");
    assert_eq!(bar(1.0, 0.0, 10), "");
    assert_eq!((height(0.0), height(50.0), height(250.0)), ('▁', '▅', '█'));
}

#[test]
fn long_texts_keep_both_ends() {
    assert_eq!(shorten("/data", 10), "/data");
    assert_eq!(shorten("/data/very/long/volume7", 11), "/data…lume7");
    assert_eq!(shorten("/data/very/long/volume7", 11).chars().count(), 11);
}
