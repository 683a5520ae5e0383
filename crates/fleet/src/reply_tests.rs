//! Answers in one part and in many, and what a hostile host could send.
use super::*;
use crate::link::HEARTBEAT_BYTES_MAX;

fn reply(bytes: &[u8]) -> Reply {
    let mut writer = ReplyWriter::new();
    bytes.chunks(100_000).for_each(|chunk| writer.write(chunk).unwrap());
    writer.finish().unwrap()
}

/// Sends all parts; returns their number.
fn sent(reply: &Reply) -> (Reply, u32) {
    let (mut other, mut next) = (Reply::default(), Some(0));
    let mut parts = 0;
    while let Some(number) = next {
        let part = reply.part(number).unwrap();
        assert!(serde_json::to_string(&part).unwrap().len() + 4_096 < HEARTBEAT_BYTES_MAX);
        next = other.add(&part).unwrap();
        parts += 1;
    }
    (other, parts)
}

/// Text that cannot be compressed much.
fn noise(bytes: usize) -> String {
    let mut random = fastrand::Rng::with_seed(1);
    (0..bytes).map(|_| random.alphanumeric()).collect()
}

#[test]
fn answers_arrive_as_they_were_sent() {
    for (bytes, wanted) in [(0, 1), (10, 1), (4 << 20, 7)] {
        let text = noise(bytes);
        let (found, parts) = sent(&reply(text.as_bytes()));
        assert!(found.text().unwrap() == text && parts == wanted, "{bytes} bytes in {parts} parts");
    }
}

#[test]
fn an_answer_that_is_too_large_is_an_error() {
    let zeros = vec![0; 1 << 20];
    let mut writer = ReplyWriter::new();
    let all = ANSWER_BYTES_MAX / zeros.len() as u64;
    (0..all).for_each(|_| writer.write(&zeros).unwrap());
    let why = writer.write(b"x").unwrap_err().to_string();
    assert_eq!(why, "the result is too large to be sent: more than 268435456 bytes before compression");
    let noise = noise(1 << 20);
    let mut writer = ReplyWriter::new();
    let failed = (0..60).find_map(|_| writer.write(noise.as_bytes()).err().map(|error| error.to_string()));
    let why = failed.or_else(|| writer.finish().err().map(|error| error.to_string())).unwrap();
    assert_eq!(why, "the result is too large to be sent: more than 33554432 bytes after compression");
}

#[test]
fn parts_of_a_hostile_host_are_refused() {
    let part = |number: u32, of: u32, data: &str| {
        serde_json::json!({ "number": number, "of": of, "data": data }).to_string()
    };
    let long = STANDARD.encode(vec![0; PART_BYTES + 1]);
    for bad in [
        part(1, 2, ""),
        part(0, 0, ""),
        part(0, PARTS_MAX + 1, ""),
        part(0, 1, "!"),
        part(0, 1, &long),
        "{}".to_owned(),
        "not JSON".to_owned(),
    ] {
        assert!(Reply::default().add(&bad).is_err(), "{bad}");
    }
    let mut reply = Reply::default();
    assert_eq!(reply.add(&part(0, 3, "")).unwrap(), Some(1));
    assert!(reply.add(&part(0, 3, "")).is_err() && reply.add(&part(1, 4, "")).is_err());
    assert_eq!(reply.add(&part(1, 3, "")).unwrap(), Some(2));
    assert!(reply.text().is_err(), "nothing is no compressed text");
}

#[test]
fn the_host_has_no_part_beyond_the_last() {
    assert!(reply(b"x").part(1).is_err() && Reply::default().part(0).is_err());
}
