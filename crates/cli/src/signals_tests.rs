//! Messages of signals.
use super::{Stopping, cut_off, message};

#[test]
fn messages_name_what_is_left_and_what_to_do_after_a_cut_off() {
    let nothing = Stopping::default();
    assert_eq!(message(&nothing), "stopping; press Ctrl-C again after 2 s to cut off");
    assert_eq!(cut_off(&nothing).to_text(), "error: cut off");
    let writing =
        Stopping { left: "120 MB to write".into(), after_cut_off: Some("keepup recover /a/run".into()) };
    assert_eq!(message(&writing), "stopping: 120 MB to write; press Ctrl-C again after 2 s to cut off");
    let text = "error: cut off; not done: 120 MB to write\nhint: keepup recover /a/run";
    assert_eq!(cut_off(&writing).to_text(), text);
}
