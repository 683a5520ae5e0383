//! Frames are complete for any split of the bytes.

use proptest::prelude::*;

use super::*;

fn ack(stream: u32) -> Ack {
    Ack { stream, durable_next: 10, received_next: 20, credit_bytes: 30, lost_events: 4 }
}

fn error() -> ErrorReply {
    ErrorReply { error: "no space".to_owned(), hint: "wait".to_owned() }
}

fn bytes() -> Vec<u8> {
    let mut bytes = ack(1).to_header().encode().to_vec();
    bytes.extend(error().to_frame().unwrap());
    bytes.extend(ack(2).to_header().encode());
    bytes
}

#[test]
fn frames_that_no_recorder_sends_are_refused() {
    let mut inbox = Inbox::default();
    inbox.push(&Header::control(FrameKind::Hello, &[]).encode());
    assert!(inbox.next_frame().unwrap_err().to_string().contains("only a client sends this kind"));
}

#[test]
fn lengths_are_checked_before_more_bytes_are_kept() {
    for (kind, length) in
        [(FrameKind::Ack, 1), (FrameKind::Bye, MAX_CONTROL_BYTES + 1), (FrameKind::Event, u64::MAX)]
    {
        let mut inbox = Inbox::default();
        inbox.push(&Header { length, ..Header::control(kind, &[]) }.encode());
        assert!(matches!(inbox.next_frame(), Err(WireError::TooLong { .. })), "{kind}");
    }
}

#[test]
fn damaged_payloads_are_refused() {
    let mut frame = error().to_frame().unwrap();
    frame[70] ^= 4;
    let mut inbox = Inbox::default();
    inbox.push(&frame);
    assert!(inbox.next_frame().unwrap_err().to_string().contains("checksum"));
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_frames(cuts in prop::collection::vec(1usize..100, 1..40)) {
        let (all, mut inbox, mut frames, mut at) = (bytes(), Inbox::default(), Vec::new(), 0);
        for cut in cuts.iter().cycle() {
            let end = (at + cut).min(all.len());
            inbox.push(&all[at..end]);
            while let Some(frame) = inbox.next_frame().unwrap() {
                frames.push(frame);
            }
            at = end;
            if at == all.len() {
                break;
            }
        }
        prop_assert_eq!(frames, vec![Frame::Ack(ack(1)), Frame::Error(error()), Frame::Ack(ack(2))]);
        prop_assert!(inbox.bytes.len() <= all.len());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut inbox = Inbox::default();
        inbox.push(&bytes);
        let _ = inbox.next_frame();
    }
}
