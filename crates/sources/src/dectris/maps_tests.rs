//! Which maps become streams, and which are left out.
use super::*;

const F32: ElementType = ElementType::F32;

fn sent<'a>(shape: &[u64], bytes: &'a [u8]) -> SentMap<'a> {
    let (channel, map, shape) = (Some("a".into()), "flatfield", shape.to_vec());
    SentMap { channel, map, element: F32, shape, compression: None, bytes }
}

/// Streams and remarks of maps in one message of `bytes`.
fn maps(sent: &[SentMap<'_>], bytes: &[u8], bytes_max: u64) -> (Vec<String>, Vec<String>) {
    let mut maps = Maps::default();
    let channels = ["a".to_owned(), "b-pixel_mask".to_owned()];
    sent.iter().for_each(|map| maps.add(map, bytes.as_ptr().addr(), &channels, bytes_max));
    let streams =
        maps.streams().iter().map(|stream| format!("{} {} {:?}", stream.id, stream.name, stream.shape));
    (streams.collect(), maps.take_remarks())
}

fn left_out(sent: SentMap<'_>, bytes: &[u8]) -> String {
    let (streams, remarks) = maps(&[sent], bytes, 100);
    assert_eq!((streams.len(), remarks.len()), (0, 1), "{streams:?} {remarks:?}");
    remarks.concat()
}

#[test]
fn maps_are_handed_out_from_the_message() {
    let bytes: Vec<u8> = (0..60).collect();
    let mut maps = Maps::default();
    maps.add(&sent(&[2, 3], &bytes[10..34]), bytes.as_ptr().addr(), &[], 100);
    let table = SentMap { channel: None, map: "table", shape: Vec::new(), ..sent(&[], &bytes[40..60]) };
    maps.add(&table, bytes.as_ptr().addr(), &[], 100);
    maps.keep(bytes.clone(), 7);
    let streams = maps.streams();
    assert_eq!((streams[0].name.as_str(), &streams[0].shape[..]), ("a-flatfield", &[2, 3][..]));
    assert_eq!((streams[1].name.as_str(), &streams[1].shape[..]), ("table", &[5][..]));
    assert_eq!((maps.left(), maps.event(0)), (0..2, (7, &bytes[10..34])));
    maps.take();
    assert_eq!((maps.left(), maps.event(1)), (1..2, (7, &bytes[40..60])));
    maps.take();
    assert_eq!((maps.left(), maps.bytes.capacity()), (2..2, 0), "the memory is free");
}

#[test]
fn compressed_maps_state_their_length() {
    let compressed = |length: u64| [&length.to_be_bytes()[..], &[1; 5]].concat();
    let compression = Some(Compression::Lz4);
    let bytes = compressed(24);
    let table = SentMap { channel: None, map: "table", shape: Vec::new(), compression, ..sent(&[], &bytes) };
    let (streams, remarks) = maps(&[SentMap { compression, ..sent(&[2, 3], &bytes) }, table], &bytes, 100);
    assert_eq!(streams, ["49152 a-flatfield [2, 3]", "49153 table [6]"], "{remarks:?}");
    for length in [0, 23, 25, u64::MAX] {
        let bytes = compressed(length);
        let why = left_out(SentMap { compression, ..sent(&[2, 3], &bytes) }, &bytes);
        assert!(
            why.contains(&format!("{length} bytes do not match the type f32 and the shape [2, 3]")),
            "{why}"
        );
    }
    let why = left_out(SentMap { compression, ..sent(&[2, 3], &bytes[..7]) }, &bytes);
    assert!(why.contains("its compressed data have 7 bytes"), "{why}");
}

#[test]
fn maps_that_cannot_be_recorded_are_left_out() {
    let bytes = [0; 400];
    let mismatch = "do not match the type f32 and the shape";
    for shape in [&[2, 2][..], &[0, 0], &[u64::MAX, u64::MAX, 4], &[1 << 32, 1 << 32, 1]] {
        let why = left_out(sent(shape, &bytes[..24]), &bytes);
        assert!(why.contains(mismatch), "{why}");
    }
    assert!(left_out(sent(&[], &bytes[..7]), &bytes).contains(mismatch));
    assert!(left_out(sent(&[], &[]), &bytes).contains(mismatch));
    assert!(left_out(sent(&[100], &bytes), &bytes).contains("400 bytes, limit 100 bytes"));
    let deep = [1, 1, 1, 1, 1, 1, 1, 1, 6];
    assert!(left_out(sent(&deep, &bytes[..24]), &bytes).contains("cannot be that of a stream"));
    for channel in ["\u{7}", &"x".repeat(200)] {
        let why = left_out(SentMap { channel: Some(channel.into()), ..sent(&[6], &bytes[..24]) }, &bytes);
        assert!(why.contains("cannot be that of a stream") && why.len() < 300, "{why}");
    }
    let taken = SentMap { channel: Some("b".into()), map: "pixel_mask", ..sent(&[6], &bytes[..24]) };
    assert!(left_out(taken, &bytes).contains("another stream has this name"));
}

#[test]
fn the_number_of_maps_and_remarks_is_bounded() {
    let bytes = [0; 24];
    let names: Vec<String> = (0..3 * MAPS_MAX).map(|number| number.to_string()).collect();
    let sent: Vec<_> =
        names.iter().map(|name| SentMap { channel: Some(name.into()), ..sent(&[6], &bytes) }).collect();
    let (streams, remarks) = maps(&sent, &bytes, 100);
    assert_eq!((streams.len(), remarks.len()), (MAPS_MAX, REMARKS_MAX));
    assert!(remarks[0].contains("the detector has more than 48 maps"), "{remarks:?}");
}

#[test]
fn a_remark_is_short_whatever_the_detector_sends() {
    let mut maps = Maps::default();
    maps.remark("ä".repeat(1_000_000));
    assert_eq!(maps.take_remarks(), ["ä".repeat(REMARK_CHARS_MAX)]);
}
