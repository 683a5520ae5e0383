//! Validation of messages, their JSON, and the error reply.

use proptest::prelude::*;

use super::*;

fn stream(id: u32, name: &str) -> StreamInfo {
    StreamInfo { id, name: name.to_owned(), element: ElementType::U16, shape: vec![4, 2], compression: None }
}

fn fault(streams: Vec<StreamInfo>) -> String {
    Hello::new("test", streams).check().unwrap_err().to_string()
}

#[test]
fn hello_has_the_documented_json() {
    let frame = Hello::new("cam", vec![stream(7, "left")]).to_frame().unwrap();
    let json = std::str::from_utf8(&frame[64..]).unwrap();
    assert_eq!(
        json,
        r#"{"protocol":1,"client":"cam","streams":[{"id":7,"name":"left","element":"u16","shape":[4,2]}]}"#
    );
    assert_eq!(Hello::from_payload(&frame[64..]).unwrap().streams[0].event_bytes(), Some(16));
}

#[test]
fn a_drain_names_its_recording() {
    let metadata = BTreeMap::from([("sample".to_owned(), "quartz\n4 µm".to_owned())]);
    let recording = SentRecording {
        name: "run 1".into(),
        id: "ab".repeat(16),
        created_unix_ns: 5,
        run: Some(17),
        metadata,
    };
    let hello = |recording: &SentRecording| Hello {
        recording: Some(recording.clone()),
        ..Hello::new("drain", vec![stream(7, "left")])
    };
    let frame = hello(&recording).to_frame().unwrap();
    assert_eq!(Hello::from_payload(&frame[64..]).unwrap().recording.as_ref(), Some(&recording));
    let long = |bytes: usize| "x".repeat(bytes);
    let texts = |texts: &[(String, String)]| texts.iter().cloned().collect::<BTreeMap<_, _>>();
    let many: Vec<_> = (0..65).map(|n| (n.to_string(), String::new())).collect();
    let bad = [
        SentRecording { name: String::new(), ..recording.clone() },
        SentRecording { name: "a\u{1b}b".into(), ..recording.clone() },
        SentRecording { name: long(201), ..recording.clone() },
        SentRecording { id: String::new(), ..recording.clone() },
        SentRecording { id: long(65), ..recording.clone() },
        SentRecording { metadata: texts(&many), ..recording.clone() },
        SentRecording { metadata: texts(&[(long(24), long(1001))]), ..recording.clone() },
        SentRecording { metadata: texts(&[("a\nb".into(), long(1))]), ..recording.clone() },
        SentRecording { metadata: texts(&[("a".into(), "\0".into())]), ..recording.clone() },
        SentRecording { metadata: texts(&[(String::new(), long(1))]), ..recording.clone() },
    ];
    for bad in bad {
        assert!(!bad.is_valid(), "{bad:?}");
        assert!(hello(&bad).check().unwrap_err().to_string().contains("recording."), "{bad:?}");
    }
    let full = SentRecording { metadata: texts(&many[..64]), ..recording };
    assert!(full.is_valid());
}

#[test]
fn any_text_becomes_a_valid_name() {
    use crate::wire::{NAME_BYTES_MAX, printable_end};
    let long = format!("dir:/{}", "é".repeat(300));
    for (text, name) in [
        ("dir:/data/in", "dir:/data/in"),
        ("dir:a\tb\u{202e}c\u{200d}", "dir:a_b_c_"),
        (&long, &"é".repeat(128)),
    ] {
        assert_eq!(printable_end(text, NAME_BYTES_MAX), name);
        Hello::new(name, vec![stream(1, "a")]).check().unwrap();
    }
    assert_eq!(printable_end("aéé", 3), "é");
}

#[test]
fn invalid_hellos_are_refused() {
    assert!(fault(vec![]).contains("0 streams"));
    assert!(fault(vec![stream(65_536, "a")]).contains("above 65535"));
    assert!(fault(vec![stream(1, "a"), stream(1, "b")]).contains("id 1 is declared twice"));
    assert!(fault(vec![stream(1, "a"), stream(2, "a")]).contains("\"a\" is declared twice"));
    for streams in
        [vec![stream(1, "a"), stream(2, "a")], vec![stream(1, "a"), stream(1, "b")], vec![stream(1, "")]]
    {
        let cause = Hello::new("test", streams).check().unwrap_err();
        assert!(cause.hint().is_some(), "{cause}");
    }
    for name in ["", "a\nb", "\u{1b}[2J", "a\u{202e}b", &"x".repeat(257)] {
        assert!(fault(vec![stream(1, name)]).contains("name"), "{name:?}");
    }
    assert!(
        Hello::new("test", vec![stream(1, &"x".repeat(256)), stream(65_535, "Detektor Süd")]).check().is_ok()
    );
    for shape in [vec![0], vec![1; 9], vec![u64::MAX, 2], vec![u64::MAX]] {
        assert!(fault(vec![StreamInfo { shape, ..stream(1, "a") }]).contains("shape"));
    }
    let newer = Hello { protocol: 2, ..Hello::new("test", vec![stream(1, "a")]) };
    assert!(newer.check().unwrap_err().to_string().contains("version 2"));
    assert!(Hello::new("", vec![stream(1, "a")]).check().unwrap_err().to_string().contains("client"));
    let of = |client_streams| {
        let streams = vec![stream(1, "a"), stream(2, "b")];
        Hello { client_streams: Some(client_streams), ..Hello::new("c", streams) }.check()
    };
    assert!(of(2).is_ok() && of(65_535).is_ok());
    for streams in [0, 1, 65_536, u32::MAX] {
        assert!(of(streams).unwrap_err().to_string().contains("client_streams"), "{streams}");
    }
}

#[test]
fn unknown_keys_and_elements_are_refused() {
    let with = |text: &str| Hello::from_payload(text.as_bytes()).unwrap_err().to_string();
    let error = with(r#"{"protocol":1,"client":"c","streams":[],"extra":1}"#);
    assert!(error.contains("unknown field `extra`"), "{error}");
    let error =
        with(r#"{"protocol":1,"client":"c","streams":[{"id":1,"name":"a","element":"u128","shape":[]}]}"#);
    assert!(error.contains("u128"), "{error}");
    assert!(with("not json").contains("hello"));
}

#[test]
fn a_message_above_the_limit_is_not_sent() {
    let reply = ErrorReply { error: "x".repeat(9 << 20), hint: String::new() };
    assert!(matches!(reply.to_frame(), Err(WireError::TooLong { bytes_max: MAX_CONTROL_BYTES, .. })));
}

#[test]
fn an_error_reply_has_the_cause_and_its_hint() {
    let reply = ErrorReply::of(&Cause::new("what failed").with_hint("do this"));
    assert_eq!((reply.error.as_str(), reply.hint.as_str()), ("what failed", "do this"));
    assert_eq!(ErrorReply::of(&Cause::new("no help")).hint, "");
}

#[test]
fn tables_list_a_stream_once() {
    let entry = WelcomeStream { id: 3, ..WelcomeStream::default() };
    let welcome = Welcome {
        recording: "r".to_owned(),
        streams: vec![entry, entry],
        max_event_bytes: 1,
        credit_bytes: 1,
    };
    assert!(welcome.check().unwrap_err().to_string().contains("twice"));
}

#[test]
fn a_resume_identity_is_short_and_visible() {
    let hello = |resume: &str| Hello { resume: Some(resume.into()), ..Hello::new("t", vec![stream(1, "a")]) };
    let frame = hello("crate 7").to_frame().unwrap();
    assert_eq!(Hello::from_payload(&frame[64..]), Ok(hello("crate 7")));
    for bad in ["", "a\u{1b}b", &"x".repeat(129)] {
        assert!(hello(bad).check().unwrap_err().to_string().contains("resume"), "{bad:?}");
    }
}

#[test]
fn final_counts_cannot_overflow() {
    let last = EndStream { id: 3, events: 8, bytes: 80, lost_events: 2, lost_bytes: 20, next_sequence: 10 };
    let check = |last: EndStream| End { streams: vec![last] }.check();
    assert_eq!(check(last), Ok(()));
    assert_eq!(check(EndStream { next_sequence: SEQUENCE_END, ..last }), Ok(()));
    for bad in [
        EndStream { next_sequence: SEQUENCE_END + 1, ..last },
        EndStream { events: u64::MAX, ..last },
        EndStream { bytes: 1 << 63, ..last },
        EndStream { lost_events: 1 << 63, ..last },
        EndStream { lost_bytes: u64::MAX, ..last },
    ] {
        assert!(check(bad).unwrap_err().to_string().contains("2^63"), "{bad:?}");
    }
    assert!(
        check(EndStream { next_sequence: 9, ..last }).unwrap_err().to_string().contains("next_sequence 9")
    );
}

#[test]
fn element_types_have_one_name_each() {
    for element in ElementType::ALL {
        assert_eq!(element.as_str().parse::<ElementType>(), Ok(element));
        assert_eq!(serde_json::to_string(&element).unwrap(), format!("\"{element}\""));
        assert_eq!(element.bytes() * 8, element.as_str()[1..].parse::<u64>().unwrap());
    }
    assert!("u12".parse::<ElementType>().unwrap_err().to_string().contains("not one of u8"));
}

proptest! {
    #[test]
    fn acks_round_trip(stream in 0u32..65_536, numbers in any::<[u64; 4]>()) {
        let [durable_next, received_next, credit_bytes, lost_events] = numbers;
        let ack = Ack { stream, durable_next, received_next, credit_bytes, lost_events };
        let header = Header::decode(&ack.to_header().encode()).unwrap();
        prop_assert_eq!((header.kind, header.length), (FrameKind::Ack, 0));
        prop_assert_eq!(Ack::from_header(&header), ack);
    }

    #[test]
    fn hellos_round_trip(
        ids in prop::collection::btree_set(0u32..65_536, 1..50),
        dims in prop::collection::vec(1u64..200, 0..8),
    ) {
        let streams = ids.iter().map(|id| StreamInfo {
            id: *id,
            name: format!("s {id} ✓"),
            element: ElementType::F64,
            shape: dims.clone(),
            compression: None,
        }).collect();
        let hello = Hello::new("prop", streams);
        let frame = hello.to_frame().unwrap();
        prop_assert_eq!(Hello::from_payload(&frame[64..]), Ok(hello));
    }

    #[test]
    fn arbitrary_payloads_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Hello::from_payload(&bytes);
        let _ = End::from_payload(&bytes);
        let _ = Welcome::from_payload(&bytes);
    }
}
