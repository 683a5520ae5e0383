//! Messages of Stream V2 as the vendor's description has them.
use minicbor::Encoder;
use minicbor::data::Tag;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { message_bytes_max: 1 << 20, event_bytes_max: u64::MAX };
type Out = Encoder<Vec<u8>>;

/// A map that begins with the type, and has the given fields behind it.
fn message(kind: &str, fields: u64, put: impl FnOnce(&mut Out)) -> Vec<u8> {
    let mut out = Encoder::new(Vec::new());
    out.map(fields + 1).unwrap().str("type").unwrap().str(kind).unwrap();
    put(&mut out);
    out.into_writer()
}

fn start(series: u64, channels: &[&str]) -> Vec<u8> {
    message("start", 8, |out| {
        out.str("series_id").unwrap().u64(series).unwrap();
        out.str("series_unique_id").unwrap().str("01ABC").unwrap();
        out.str("beam_center_x").unwrap().f64(1.5).unwrap();
        out.str("channels").unwrap().array(channels.len() as u64).unwrap();
        for name in channels {
            out.str(name).unwrap();
        }
        out.str("image_dtype").unwrap().str("uint16").unwrap();
        out.str("image_size_x").unwrap().u64(3).unwrap();
        out.str("image_size_y").unwrap().u64(2).unwrap();
        out.str("number_of_images").unwrap().u64(4).unwrap();
    })
}

fn array(out: &mut Out, (height, width): (u64, u64), tag: u64, bytes: &[u8], compression: Option<&str>) {
    out.tag(Tag::new(40)).unwrap().array(2).unwrap().array(2).unwrap();
    out.u64(height).unwrap().u64(width).unwrap().tag(Tag::new(tag)).unwrap();
    if let Some(algorithm) = compression {
        out.tag(Tag::new(56_500)).unwrap().array(3).unwrap().str(algorithm).unwrap().u64(2).unwrap();
    }
    out.bytes(bytes).unwrap();
}

/// An image whose bytes are its number; the data in front of the number, as CBOR allows.
fn image(series: u64, id: u64, channels: &[&str], compression: Option<&str>) -> Vec<u8> {
    message("image", 6, |out| {
        out.str("data").unwrap().map(channels.len() as u64).unwrap();
        for (at, name) in channels.iter().enumerate() {
            out.str(name).unwrap();
            array(out, (2, 3), 69, &[id as u8 + 10 * at as u8; 12], compression);
        }
        out.str("image_id").unwrap().u64(id).unwrap();
        out.str("series_id").unwrap().u64(series).unwrap();
        out.str("series_unique_id").unwrap().str("01ABC").unwrap();
        out.str("series_date").unwrap().tag(Tag::new(0)).unwrap();
        out.str("2026-07-01T12:00:00.5+02:00").unwrap();
        out.str("start_time")
            .unwrap()
            .array(2)
            .unwrap()
            .u64(50_000_000 * id)
            .unwrap()
            .u64(100_000_000)
            .unwrap();
    })
}

fn end(series: u64) -> Vec<u8> {
    message("end", 2, |out| {
        out.str("series_id").unwrap().u64(series).unwrap();
        out.str("series_unique_id").unwrap().str("01ABC").unwrap();
    })
}

fn handshake() -> Vec<u8> {
    let mut out = vec![0; 64];
    (out[0], out[9], out[10]) = (0xFF, 0x7F, 3);
    out[12..16].copy_from_slice(b"NULL");
    out.extend_from_slice(b"\x04\x1a\x05READY\x0bSocket-Type\0\0\0\x04PUSH");
    out
}

fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
    let frame = |message: &Vec<u8>| [&[2][..], &(message.len() as u64).to_be_bytes(), message].concat();
    messages.iter().flat_map(frame).collect()
}

fn frames(messages: &[Vec<u8>]) -> Vec<u8> {
    [handshake(), framed(messages)].concat()
}

/// Passes messages to the decoder without taking items.
fn receive(decoder: &mut Dectris, messages: &[Vec<u8>]) {
    for byte in frames(messages) {
        let Input::Bytes(space) = decoder.input() else { panic!("it reads a connection") };
        space[0] = byte;
        decoder.received(1, 0);
        decoder.item().unwrap();
    }
}

/// Items of messages on a new connection.
fn items(decoder: &mut Dectris, messages: &[Vec<u8>]) -> Result<Vec<String>, DetectorError> {
    items_of(decoder, &frames(messages))
}

/// Items in words: streams by name, events as stream, number, time in ms and first byte.
fn items_of(decoder: &mut Dectris, bytes: &[u8]) -> Result<Vec<String>, DetectorError> {
    let (mut at, mut found) = (0, Vec::new());
    loop {
        while let Some(item) = decoder.item()? {
            found.push(match item {
                Item::Streams(streams) => {
                    let names =
                        streams.iter().map(|s| format!("{} {:?} {:?}", s.name, s.shape, s.compression));
                    names.collect::<Vec<_>>().join(", ")
                }
                Item::Event(event) => {
                    let time = event.timestamp_ns / 1_000_000;
                    format!("{} {} {time} {}", event.stream, event.sequence, event.payload[0])
                }
                Item::End { events, streams } => format!("end {events} of {streams}"),
                other => format!("{other:?}"),
            });
            decoder.take();
        }
        if at == bytes.len() {
            return Ok(found);
        }
        let Input::Bytes(space) = decoder.input() else { panic!("it reads a connection") };
        let count = space.len().min(50).min(bytes.len() - at);
        space[..count].copy_from_slice(&bytes[at..at + count]);
        decoder.received(count, 0);
        at += count;
    }
}

fn refused(messages: &[Vec<u8>]) -> String {
    items(&mut Dectris::new(LIMITS), messages).unwrap_err().to_string()
}

#[test]
fn a_series_of_two_channels() {
    let channels = ["threshold_1", "threshold_2"];
    let messages = [start(7, &channels), image(7, 0, &channels, None), image(7, 2, &channels, None), end(7)];
    let found = items(&mut Dectris::new(LIMITS), &messages).unwrap();
    let streams = "threshold_1 [2, 3] None, threshold_2 [2, 3] None";
    // 2026-07-01T10:00:00.5Z is 1782900000500 ms; an image every half a second.
    let expected = [
        streams,
        "0 0 1782900000500 0",
        "1 0 1782900000500 10",
        "0 2 1782900001500 2",
        "1 2 1782900001500 12",
        "end 4 of 2",
    ];
    assert_eq!(found, expected);
}

/// A start message with a flat field and a pixel mask of channel `a`, and a table.
fn start_with_maps(series: u64) -> Vec<u8> {
    message("start", 9, |out| {
        out.str("flatfield").unwrap().map(1).unwrap().str("a").unwrap();
        array(out, (2, 3), 85, &[1; 24], None);
        out.str("series_id").unwrap().u64(series).unwrap();
        out.str("series_unique_id").unwrap().str("01ABC").unwrap();
        out.str("countrate_correction_lookup_table").unwrap();
        out.tag(Tag::new(70)).unwrap().bytes(&[2; 20]).unwrap();
        out.str("channels").unwrap().array(1).unwrap().str("a").unwrap();
        out.str("image_dtype").unwrap().str("uint16").unwrap();
        out.str("image_size_x").unwrap().u64(3).unwrap();
        out.str("image_size_y").unwrap().u64(2).unwrap();
        out.str("pixel_mask").unwrap().map(1).unwrap().str("a").unwrap();
        let length = [&24_u64.to_be_bytes()[..], &[3; 9]].concat();
        out.tag(Tag::new(40)).unwrap().array(2).unwrap().array(2).unwrap().u64(2).unwrap().u64(3).unwrap();
        out.tag(Tag::new(70)).unwrap().tag(Tag::new(56_500)).unwrap().array(3).unwrap().str("bslz4").unwrap();
        out.u64(4).unwrap().bytes(&length).unwrap();
    })
}

const WITH_MAPS: &str = "a [2, 3] None, a-flatfield [2, 3] None, \
                         countrate_correction_lookup_table [5] None, a-pixel_mask [2, 3] Some(BitshuffleLz4)";

#[test]
fn maps_are_events_of_their_own_streams() {
    let mut decoder = Dectris::new(LIMITS);
    let found = items(&mut decoder, &[start_with_maps(7), image(7, 0, &["a"], None), end(7)]).unwrap();
    let expected = [WITH_MAPS, "1 0 0 1", "2 0 0 2", "3 0 0 0", "0 0 1782900000500 0", "end 0 of 1"];
    assert_eq!(found, expected);
    assert!(decoder.remarks().is_empty());
}

#[test]
fn maps_of_a_series_without_images_are_handed_out() {
    let mut decoder = Dectris::new(LIMITS);
    let found = items(&mut decoder, &[start_with_maps(7), end(7)]).unwrap();
    assert_eq!(found, [WITH_MAPS, "1 0 0 1", "2 0 0 2", "3 0 0 0", "end 0 of 1"]);
}

#[test]
fn maps_are_handed_out_once() {
    let mut decoder = Dectris::new(LIMITS);
    // The connection is lost before any item is taken, then behind the first map.
    let (first, again) = (start_with_maps(7), image(7, 1, &["a"], None));
    receive(&mut decoder, &[first.clone(), image(7, 0, &["a"], None)]);
    decoder.reconnect();
    receive(&mut decoder, std::slice::from_ref(&again));
    for _ in 0..2 {
        assert!(decoder.item().unwrap().is_some());
        decoder.take();
    }
    decoder.reconnect();
    // A repeated start message does not bring the maps again.
    let found = items(&mut decoder, &[first, again, end(7)]).unwrap();
    assert_eq!(found, [WITH_MAPS, "2 0 0 2", "3 0 0 0", "0 1 1782900001000 1", "end 0 of 1"]);
}

#[test]
fn maps_belong_to_their_series() {
    let mut decoder = Dectris::new(LIMITS);
    let messages = [start(7, &["a"]), image(7, 0, &["a"], None), start_with_maps(8)];
    let found = items(&mut decoder, &messages).unwrap();
    assert_eq!(found, ["a [2, 3] None", "0 0 1782900000500 0", "end 4 of 1"]);
    decoder.next_series();
    let found = items_of(&mut decoder, &framed(&[image(8, 0, &["a"], None), end(8)])).unwrap();
    assert_eq!(found[..2], [WITH_MAPS, "1 0 0 1"]);
}

#[test]
fn maps_that_cannot_be_recorded_do_not_stop_the_images() {
    let bad = |put: &dyn Fn(&mut Out)| {
        let start = message("start", 8, |out| {
            out.str("series_id").unwrap().u64(7).unwrap();
            out.str("series_unique_id").unwrap().str("01ABC").unwrap();
            out.str("channels").unwrap().array(1).unwrap().str("a").unwrap();
            out.str("image_dtype").unwrap().str("uint16").unwrap();
            out.str("image_size_x").unwrap().u64(3).unwrap();
            out.str("image_size_y").unwrap().u64(2).unwrap();
            put(out);
            out.str("pixel_mask").unwrap().map(1).unwrap().str("a").unwrap();
            array(out, (2, 3), 70, &[9; 24], None);
        });
        let mut decoder = Dectris::new(Limits { event_bytes_max: 30, ..LIMITS });
        let found = items(&mut decoder, &[start, image(7, 0, &["a"], None), end(7)]).unwrap();
        assert_eq!(found[1..3], ["1 0 0 9", "0 0 1782900000500 0"], "the other map is recorded");
        decoder.remarks().join(", ")
    };
    let field = |name: &'static str, put: &dyn Fn(&mut Out)| {
        bad(&|out| {
            out.str(name).unwrap();
            put(out);
        })
    };
    let flatfield = |size, tag, bytes: &[u8]| {
        field("flatfield", &|out| {
            out.map(1).unwrap().str("a").unwrap();
            array(out, size, tag, bytes, None);
        })
    };
    assert!(
        flatfield((2, 3), 81, &[0; 24])
            .contains("\"a-flatfield\" is not recorded: flatfield: elements with tag 81")
    );
    assert!(
        flatfield((2, 4), 85, &[0; 24]).contains("24 bytes do not match the type f32 and the shape [2, 4]")
    );
    assert!(flatfield((2, 4), 85, &[0; 32]).contains("32 bytes, limit 30 bytes"));
    assert!(
        field("flatfield", &|out| drop(out.u8(1).map(|_| ()))).contains("\"flatfield\" is not recorded: map")
    );
    let table = "countrate_correction_lookup_table";
    assert!(field(table, &|out| drop(out.array(0).map(|_| ()))).contains(table));
    assert_eq!(field(table, &|out| drop(out.null().map(|_| ()))), "");
    assert_eq!(field("flatfield", &|out| drop(out.null().map(|_| ()))), "");
}

#[test]
fn short_fields_of_the_start_are_metadata() {
    let start = message("start", 13, |out| {
        out.str("series_id").unwrap().u64(7).unwrap().str("image_dtype").unwrap().str("uint8").unwrap();
        out.str("channels").unwrap().array(2).unwrap().str("a").unwrap().str("b").unwrap();
        out.str("image_size_x").unwrap().u64(1).unwrap().str("image_size_y").unwrap().u64(1).unwrap();
        out.str("beam_center_x")
            .unwrap()
            .f64(1033.5)
            .unwrap()
            .str("flatfield_enabled")
            .unwrap()
            .bool(true)
            .unwrap();
        out.str("arm_date").unwrap().tag(Tag::new(0)).unwrap().str("2026-07-01T12:00:00Z").unwrap();
        out.str("detector_translation")
            .unwrap()
            .array(3)
            .unwrap()
            .f64(0.0)
            .unwrap()
            .i8(-1)
            .unwrap()
            .f32(0.25)
            .unwrap();
        out.str("goniometer").unwrap().map(1).unwrap().str("omega").unwrap().map(1).unwrap();
        out.str("start").unwrap().f64(90.0).unwrap();
        out.str("pixel_mask").unwrap().map(1).unwrap().str("a").unwrap();
        array(out, (1, 1), 70, &[0; 4], None);
        out.str("user_data").unwrap().array(2).unwrap().u8(1).unwrap().array(0).unwrap();
        out.str("comment").unwrap().str(&"x".repeat(1100)).unwrap();
    });
    let mut decoder = Dectris::new(LIMITS);
    items(&mut decoder, &[start, end(7)]).unwrap_err();
    let found: Vec<_> = decoder.metadata().iter().map(|(key, value)| format!("{key}={value}")).collect();
    let expected = [
        "arm_date=2026-07-01T12:00:00Z",
        "beam_center_x=1033.5",
        "channels=a, b",
        "detector_translation=0, -1, 0.25",
        "flatfield_enabled=true",
        "goniometer/omega/start=90",
        "image_dtype=uint8",
        "image_size_x=1",
        "image_size_y=1",
        "series_id=7",
    ];
    assert_eq!(found, expected);
}

#[test]
fn compressed_images_stay_compressed() {
    let messages = [start(7, &["a"]), image(7, 0, &["a"], Some("bslz4"))];
    let found = items(&mut Dectris::new(LIMITS), &messages).unwrap();
    assert_eq!(found[0], "a [2, 3] Some(BitshuffleLz4)");
    let mixed = [&messages[..], &[image(7, 1, &["a"], None)]].concat();
    assert!(refused(&mixed).ends_with("has a different compression than the first image"));
}

#[test]
fn a_series_continues_on_a_new_connection() {
    let mut decoder = Dectris::new(LIMITS);
    items(&mut decoder, &[start(7, &["a"]), image(7, 0, &["a"], None)]).unwrap();
    decoder.reconnect();
    let found = items(&mut decoder, &[image(7, 3, &["a"], None)]).unwrap();
    assert_eq!(found, ["a [2, 3] None", "0 3 1782900002000 3"], "the streams are declared again");
}

#[test]
fn images_before_the_start_of_a_series_are_skipped() {
    let mut decoder = Dectris::new(LIMITS);
    let messages = [image(6, 9, &["a"], None), end(6), start(7, &["a"]), start(7, &["a"]), end(7)];
    assert_eq!(items(&mut decoder, &messages).unwrap(), ["a [2, 3] None", "end 4 of 1"]);
    let remarks = decoder.remarks();
    assert!(remarks.len() == 1 && decoder.remarks().is_empty(), "{remarks:?}");
}

#[test]
fn a_detector_that_is_armed_again_has_ended_its_series() {
    let other = message("start", 5, |out| {
        out.str("series_id").unwrap().u64(8).unwrap();
        out.str("channels").unwrap().array(1).unwrap().str("a").unwrap();
        out.str("image_dtype").unwrap().str("uint8").unwrap();
        out.str("image_size_x").unwrap().u64(1).unwrap().str("image_size_y").unwrap().u64(1).unwrap();
    });
    let messages = [start(7, &["a"]), image(7, 0, &["a"], None), other];
    let found = items(&mut Dectris::new(LIMITS), &messages).unwrap();
    assert_eq!(found.last().unwrap(), "end 4 of 1");
}

#[test]
fn a_series_that_ended_with_its_connection_has_its_streams() {
    let mut decoder = Dectris::new(LIMITS);
    items(&mut decoder, &[start(7, &["a"]), image(7, 0, &["a"], None)]).unwrap();
    decoder.reconnect();
    assert_eq!(items(&mut decoder, &[start(8, &["a"])]).unwrap(), ["a [2, 3] None", "end 4 of 1"]);
}

#[test]
fn a_start_may_be_repeated() {
    let messages = |again: &[&str]| [start(7, &["a"]), image(7, 0, &["a"], None), start(7, again), end(7)];
    let found = items(&mut Dectris::new(LIMITS), &messages(&["a"])).unwrap();
    assert_eq!(found, ["a [2, 3] None", "0 0 1782900000500 0", "end 4 of 1"]);
    assert!(refused(&messages(&["b"])).contains("repeated with other images"));
}

#[test]
fn hostile_messages_are_refused() {
    let field = |put: &dyn Fn(&mut Out)| refused(&[message("start", 1, put)]);
    let number = |name: &str| {
        field(&|out| {
            out.str(name).unwrap().u64(u64::MAX).unwrap();
        })
    };
    assert!(number("image_id").contains("image_id: 18446744073709551615 is too large"));
    assert!(number("number_of_images").contains("too large"));
    let nested = field(&|out| {
        out.str("user_data").unwrap();
        (0..100).for_each(|_| drop(out.begin_array().map(|_| ())));
    });
    assert!(nested.contains("nested too deeply"), "{nested}");
    let long = refused(&[message(&"x".repeat(5000), 0, |_| ())]);
    assert!(long.len() < 200, "{long}");
}

#[test]
fn contradictions_are_refused() {
    let with = |message: Vec<u8>| refused(&[start(7, &["a"]), message]);
    assert!(with(image(8, 0, &["a"], None)).contains("is of series 8"));
    assert!(with(image(7, 0, &["b"], None)).contains("lacks channel \"a\""));
    assert!(with(image(7, 0, &["a", "b"], None)).contains("unknown channel \"b\""));
    assert!(with(end(9)).contains("is of series 9, expected series 7"));
    let data = |size, tag, bytes: &[u8], algorithm| {
        message("image", 4, |out| {
            out.str("series_id").unwrap().u64(7).unwrap().str("image_id").unwrap().u64(0).unwrap();
            out.str("series_unique_id").unwrap().str("01ABC").unwrap();
            out.str("data").unwrap().map(1).unwrap().str("a").unwrap();
            array(out, size, tag, bytes, algorithm);
        })
    };
    assert!(with(data((3, 2), 69, &[0; 12], None)).contains("has 2 x 3 pixels, not 3 x 2"));
    assert!(with(data((2, 3), 70, &[0; 24], None)).contains("of type u32, not u16"));
    assert!(with(data((2, 3), 69, &[0; 11], None)).contains("has 11 bytes, not 12"));
    assert!(with(data((2, 3), 65, &[0; 12], None)).contains("tag 65"), "big endian");
    assert!(with(data((2, 3), 69, &[0; 5], Some("zstd"))).contains("\"zstd\" is not known"));
    assert!(with(message("news", 0, |_| ())).contains("its type is \"news\""));
    assert!(with(vec![0xA1, 0x63, b'a', b'b', b'c', 0]).contains("first field is not its type"));
    assert!(with(b"{\"htype\": \"dheader-1.0\"}".to_vec()).contains("cannot decode message"));
    let cut = image(7, 0, &["a"], None);
    assert!(with(cut[..cut.len() / 2].to_vec()).contains("cannot decode message"));
}

proptest! {
    #[test]
    fn no_message_makes_it_panic(
        seed in prop::collection::vec(any::<u8>(), 0..200),
        edits in prop::collection::vec((0..400_usize, any::<u8>()), 0..8),
    ) {
        let _ = items(&mut Dectris::new(LIMITS), &[seed]);
        let images = [image(7, 0, &["a", "b"], Some("lz4")), end(7)];
        let mut messages = [&[start(7, &["a", "b"]), start_with_maps(7)][..], &images].concat();
        for (at, byte) in edits {
            let message = &mut messages[at % 4];
            let at = at % message.len();
            message[at] = byte;
        }
        let _ = items(&mut Dectris::new(LIMITS), &messages);
    }
}
