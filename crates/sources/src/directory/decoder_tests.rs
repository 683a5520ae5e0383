//! Notices become streams, events and index lines.
use keepup_stream::rejected::RejectReason;
use proptest::prelude::*;

use super::*;

/// Hands `bytes` to a decoder in pieces of at most `piece`, as the intake does; returns what it hands out.
fn decode(bytes: &[u8], piece: usize) -> Result<(Vec<String>, Vec<u8>), DetectorError> {
    let mut decoder = Files::new(Path::new("/data/in"));
    let (mut rest, mut seen, mut content, mut payload) = (bytes, Vec::new(), Vec::new(), 0);
    loop {
        while let Some(item) = decoder.item()? {
            match item {
                Item::Start(start) => {
                    payload = start.bytes as usize;
                    seen.push(format!("start {} at {}", start.sequence, start.timestamp_ns));
                }
                Item::Event(event) => seen.push(format!(
                    "{}/{} {}",
                    event.stream,
                    event.sequence,
                    String::from_utf8_lossy(event.payload).trim_end()
                )),
                Item::Complete { is_whole: true } => decoder.completed(0xAB),
                Item::Complete { is_whole: false } => seen.push("discarded".to_owned()),
                Item::Lost { stream, sequence, cause } => seen.push(format!("{stream}/{sequence} {cause}")),
                Item::Streams(streams) => {
                    assert_eq!((&*streams[0].name, &*streams[1].name), ("files", "files-index"))
                }
                Item::End { .. } => seen.push("end".to_owned()),
            }
            decoder.take();
            if payload > 0 {
                break;
            }
        }
        seen.extend(decoder.remarks());
        let rejected = decoder.rejected().into_iter();
        seen.extend(rejected.map(|row| format!("{} {}: {} {}", row.count, row.unit, row.reason, row.detail)));
        if rest.is_empty() {
            return Ok((seen, content));
        }
        let count = if payload > 0 {
            let count = payload.min(rest.len());
            content.extend(&rest[..count]);
            payload = 0;
            count
        } else {
            let Input::Bytes(space) = decoder.input() else { panic!("datagrams") };
            let count = space.len().min(piece).min(rest.len());
            space[..count].copy_from_slice(&rest[..count]);
            decoder.received(count, 9);
            count
        };
        rest = &rest[count..];
    }
}

fn file(sequence: u64, name: &[u8], bytes: u64) -> Vec<u8> {
    Notice::File { sequence, name: name.to_vec(), bytes, mtime_ns: 5 }.to_bytes()
}

#[test]
fn files_losses_and_new_names() {
    let notices = [
        file(0, b"a", 3),
        b"abc".to_vec(),
        Notice::Whole.to_bytes(),
        Notice::Renamed { sequence: 0, name: b"b".to_vec(), from: b"a".to_vec() }.to_bytes(),
        file(1, b"c", 2),
        b"de".to_vec(),
        Notice::Changed.to_bytes(),
        Notice::Lost { sequence: 1, name: b"c".to_vec(), why: "gone".into() }.to_bytes(),
        file(2, b"", 0),
        Notice::Whole.to_bytes(),
        Notice::Rejected { reason: RejectReason::Unreadable, count: 2, detail: "no permission".into() }
            .to_bytes(),
        Notice::Remark("that is all".into()).to_bytes(),
        Notice::End.to_bytes(),
    ]
    .concat();
    let expected = [
        "start 0 at 5",
        r#"1/0 {"sequence":0,"name":"a","bytes":3,"mtime_ns":5,"crc32":"000000ab"}"#,
        r#"1/1 {"sequence":0,"name":"b","renamed_from":"a"}"#,
        "start 1 at 5",
        "discarded",
        "0/1 file not readable",
        r#"1/2 {"sequence":1,"name":"c","lost":"gone"}"#,
        r#"file 1 "c" is lost: gone"#,
        "start 2 at 5",
        r#"1/3 {"sequence":2,"name":"","bytes":0,"mtime_ns":5,"crc32":"000000ab"}"#,
        "2 file: not readable no permission",
        "that is all",
        "end",
    ];
    for piece in [1, 3, 1000] {
        let (seen, content) = decode(&notices, piece).unwrap();
        assert_eq!((seen, content), (expected.map(str::to_owned).to_vec(), b"abcde".to_vec()));
    }
}

#[test]
fn a_directory_that_cannot_be_read() {
    let failed = Notice::Failed("it was removed".into()).to_bytes();
    assert_eq!(decode(&failed, 9).unwrap_err().to_string(), "cannot read directory: it was removed");
}

#[test]
fn what_the_thread_never_sends_is_an_error() {
    let wrong = [
        Notice::Whole.to_bytes(),
        [file(0, b"a", 0), file(1, b"b", 0)].concat(),
        [file(0, b"a", 0), Notice::End.to_bytes()].concat(),
        0u32.to_le_bytes().to_vec(),
        u32::MAX.to_le_bytes().to_vec(),
        [2u32.to_le_bytes().as_slice(), b"{}"].concat(),
    ];
    for bytes in wrong {
        assert!(decode(&bytes, 100).is_err(), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_end_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        piece in 1usize..20,
    ) {
        let _ = decode(&bytes, piece);
    }

    #[test]
    fn every_notice_comes_back(name in proptest::collection::vec(1u8..=255, 1..=255), sequence: u64) {
        let notice = Notice::Renamed { sequence, from: name.clone(), name };
        let bytes = notice.to_bytes();
        prop_assert_eq!(Notice::length(*bytes.first_chunk().unwrap()).unwrap(), bytes.len() - LENGTH_BYTES);
        prop_assert_eq!(Notice::parse(&bytes[LENGTH_BYTES..]).unwrap(), notice);
    }
}
