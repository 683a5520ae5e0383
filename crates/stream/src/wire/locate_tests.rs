//! Messages of fleets: round trips and refusals.
use super::super::{Continued, ElementType, Hello, SEQUENCE_END, StreamInfo};
use super::*;

fn stream(id: u32) -> StreamInfo {
    let name = format!("s{id}");
    StreamInfo { id, name, element: ElementType::U8, shape: Vec::new(), compression: None }
}

#[test]
fn question_and_answer_survive_the_wire() {
    let locate = Locate::new("camera 3", vec![7, 9]);
    let frame = locate.to_frame().unwrap();
    assert_eq!(Locate::from_payload(&frame[64..]).unwrap(), locate);
    let address = "[fe80::1]:7611".parse().unwrap();
    let located = Located { epoch: 3, streams: vec![LocatedStream { id: 7, address }] };
    let frame = located.to_frame().unwrap();
    assert_eq!(Located::from_payload(&frame[64..]).unwrap(), located);
}

#[test]
fn bad_questions_and_answers_are_refused() {
    let refused = |locate: Locate| locate.to_frame().unwrap_err().to_string();
    assert!(refused(Locate::new("c", Vec::new())).contains("0 streams"));
    assert!(refused(Locate::new("c", vec![1, 1])).contains("twice"));
    assert!(refused(Locate::new("c", vec![65_536])).contains("above 65535"));
    assert!(refused(Locate::new("", vec![1])).contains("client"));
    assert!(refused(Locate { protocol: 2, ..Locate::new("c", vec![1]) }).contains("version 2"));
    let text = r#"{"epoch":1,"streams":[{"id":1,"address":"somewhere"}]}"#;
    assert!(Located::from_payload(text.as_bytes()).is_err());
}

#[test]
fn only_declared_streams_are_continued() {
    let at = |id, next_sequence| Continued { id, next_sequence };
    let hello = |continued| Hello { continued, ..Hello::new("c", vec![stream(1), stream(2)]) };
    let whole = hello(vec![at(2, 40)]);
    let frame = whole.to_frame().unwrap();
    assert_eq!(Hello::from_payload(&frame[64..]).unwrap(), whole);
    let refused = |continued| hello(continued).to_frame().unwrap_err().to_string();
    assert!(refused(vec![at(3, 1)]).contains("not declared"));
    assert!(refused(vec![at(1, 1), at(1, 2)]).contains("twice"));
    assert!(refused(vec![at(1, SEQUENCE_END)]).contains("2^63"));
    assert!(!String::from_utf8_lossy(&hello(Vec::new()).to_frame().unwrap()).contains("continued"));
}
