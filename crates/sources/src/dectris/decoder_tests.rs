//! Messages of Stream V2 as the vendor's description has them.
use minicbor::Encoder;
use minicbor::data::Tag;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { message_bytes_max: 1 << 20, event_bytes_max: u64::MAX };
type Out = Encoder<Vec<u8>>;

/// A message with the given fields behind its type.
fn message(kind: &str, fields: u64, put: impl FnOnce(&mut Out)) -> Vec<u8> {
    let mut out = Encoder::new(Vec::new());
    out.tag(Tag::new(55_799)).unwrap().map(fields + 1).unwrap().str("type").unwrap().str(kind).unwrap();
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
            let (value, length) = (id as u8 + 10 * at as u8, 12_u64.to_be_bytes());
            // Both compressions start with the length of the image.
            let bytes =
                if compression.is_some() { [&length[..], &[value; 4]].concat() } else { vec![value; 12] };
            array(out, (2, 3), 69, &bytes, compression);
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
            .u64(50_000_000_u64.saturating_mul(id))
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

/// What is rejected of messages: count, unit and reason of each kind, and the detail of the first.
fn rejected(decoder: &mut Dectris) -> String {
    let rows = decoder.rejected().into_iter();
    rows.map(|row| format!("{} {} {}: {}", row.count, row.unit, row.reason.name(), row.detail))
        .collect::<Vec<_>>()
        .join("; ")
}

/// The error at which the decoder ends, or what is rejected.
fn refused(messages: &[Vec<u8>]) -> String {
    let mut decoder = Dectris::new(LIMITS);
    match items(&mut decoder, messages) {
        Ok(_) => rejected(&mut decoder),
        Err(error) => error.to_string(),
    }
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
    // Image 0 had arrived whole.
    let (image_0, image_1) = ("0 0 1782900000500 0", "0 1 1782900001000 1");
    assert_eq!(found, [WITH_MAPS, "2 0 0 2", "3 0 0 0", image_0, image_1, "end 0 of 1"]);
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
    items(&mut decoder, &[start, end(7)]).unwrap();
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
fn images_before_the_start_of_a_series_are_rejected() {
    let mut decoder = Dectris::new(LIMITS);
    let messages = [image(6, 9, &["a"], None), end(6), start(7, &["a"]), start(7, &["a"]), end(7)];
    assert_eq!(items(&mut decoder, &messages).unwrap(), ["a [2, 3] None", "end 4 of 1"]);
    let rejected = rejected(&mut decoder);
    assert_eq!(rejected, "1 image outside_series: image 9 came without the start of its series");
    assert_eq!(decoder.remarks(), ["end messages of other series: 1"]);
    assert!(decoder.remarks().is_empty() && decoder.rejected().is_empty(), "each is returned once");
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
    // There is no series that could continue.
    let ended = "cannot decode message: image_id: 18446744073709551615 is too large";
    assert_eq!(number("image_id"), ended);
    let nested = field(&|out| {
        out.str("user_data").unwrap();
        (0..100).for_each(|_| drop(out.begin_array().map(|_| ())));
    });
    assert!(nested.contains("nested too deeply"), "{nested}");
    let long = refused(&[message(&"x".repeat(5000), 0, |_| ())]);
    assert!(long.len() < 200, "{long}");
    let many: Vec<_> = (0..1000).map(|_| message("news", 0, |_| ())).collect();
    assert_eq!(refused(&many), "1000 message unsupported: its type is \"news\"");
}

#[test]
fn contradictions_are_rejected_and_the_series_goes_on() {
    let with = |message: Vec<u8>| {
        let mut decoder = Dectris::new(LIMITS);
        let messages =
            [start(7, &["a"]), image(7, 0, &["a"], None), message, image(7, 1, &["a"], None), end(7)];
        let found = items(&mut decoder, &messages).unwrap();
        let images = ["0 0 1782900000500 0", "0 1 1782900001000 1"];
        assert_eq!(found, [&["a [2, 3] None"][..], &images, &["end 4 of 1"]].concat());
        rejected(&mut decoder)
    };
    assert!(with(image(8, 0, &["a"], None)).contains("is of series 8"));
    assert!(with(image(7, 2, &["b"], None)).contains("unknown channel \"b\""));
    assert_eq!(with(end(9)), "");
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
    assert!(with(b"{\"htype\": \"dheader-1.0\"}".to_vec()).contains("missing field series"));
    assert!(with(Vec::new()).starts_with("1 message malformed: message"));
    let cut = image(7, 0, &["a"], None);
    assert!(with(cut[..cut.len() / 2].to_vec()).starts_with("1 message malformed: "));
}

/// Numbers and first bytes of the images of channel `a` in a series of `images`, with what is rejected and
/// the remarks.
fn series_of(messages: &[Vec<u8>]) -> (Vec<String>, String, Vec<String>) {
    let mut decoder = Dectris::new(LIMITS);
    let found = items(&mut decoder, &[&[start(7, &["a"])][..], messages, &[end(7)]].concat()).unwrap();
    let images = found.iter().filter(|item| item.starts_with("0 ")).map(|item| {
        let parts: Vec<_> = item.split(' ').collect();
        format!("{} {}", parts[1], parts[3])
    });
    (images.collect(), rejected(&mut decoder), decoder.remarks())
}

fn images(numbers: &[u64]) -> Vec<Vec<u8>> {
    numbers.iter().map(|number| image(7, *number, &["a"], None)).collect()
}

/// An image with the content of another one.
fn image_like(number: u64, other: u64) -> Vec<u8> {
    let (mut message, of_other) = (image(7, number, &["a"], None), image(7, other, &["a"], None));
    let from = message.windows(12).position(|bytes| bytes == [number as u8; 12]).unwrap();
    message[from..from + 12].copy_from_slice(&of_other[from..from + 12]);
    message
}

#[test]
fn repeated_images_are_counted_and_shift_nothing() {
    for repeated in [0, 1, 2] {
        let found = series_of(&images(&[0, 1, 2, repeated, 3]));
        let expected = ["repeated images, identical to those that are recorded: 1"];
        assert_eq!(found.0, ["0 0", "1 1", "2 2", "3 3"]);
        assert_eq!((&found.1[..], &found.2[..]), ("", &expected.map(str::to_owned)[..]));
    }
    // While the first one waits for image 1.
    let found = series_of(&images(&[0, 2, 2, 1, 3]));
    assert_eq!((found.0.len(), &found.1[..], found.2.len()), (4, "", 1));
}

#[test]
fn images_with_the_number_of_another_are_rejected() {
    for (numbers, other) in [(&[0, 1, 2][..], 1), (&[0, 2], 2)] {
        let messages = [images(numbers), vec![image_like(other, 9)], images(&[1, 3])].concat();
        let (found, rejected, _) = series_of(&messages);
        assert_eq!(found, ["0 0", "1 1", "2 2", "3 3"]);
        assert_eq!(rejected, format!("1 image conflicting: image {other} arrived again with other content"));
    }
}

#[test]
fn late_images_are_recorded_in_their_place() {
    let (found, rejected, remarks) = series_of(&images(&[1, 0, 3, 2]));
    assert_eq!(
        (found, &rejected[..], remarks.len()),
        (["0 0", "1 1", "2 2", "3 3"].map(Into::into).into(), "", 0)
    );
}

#[test]
fn an_image_that_is_too_late_is_rejected() {
    let mut decoder = Dectris::new(LIMITS);
    items(&mut decoder, &[vec![start(7, &["a"])], images(&[0, 2])].concat()).unwrap();
    // Nothing arrives for some time: image 2 does not wait for image 1 any more.
    decoder.tick(1);
    assert!(!decoder.has_due());
    decoder.tick(3_000_000_000);
    assert!(decoder.has_due());
    assert_eq!(items_of(&mut decoder, &[]).unwrap(), ["0 2 1782900001500 2"]);
    let rest = [images(&[1, 3]), vec![end(7)]].concat();
    assert_eq!(items_of(&mut decoder, &framed(&rest)).unwrap(), ["0 3 1782900002000 3", "end 4 of 1"]);
    assert!(rejected(&mut decoder).starts_with("1 image late: image 1 arrived after"));
}

#[test]
fn numbers_that_no_series_has_are_rejected() {
    // The series has 4 images.
    for number in [4, 5, 255, 1 << 16, u64::from(u32::MAX), 1 << 40] {
        let messages = [images(&[0, 1]), images(&[number]), images(&[2, 3])].concat();
        let (found, rejected, _) = series_of(&messages);
        assert_eq!(found, ["0 0", "1 1", "2 2", "3 3"]);
        assert!(rejected.starts_with("1 image contradictory: "), "{rejected}");
    }
    // A detector that sends more than it announced is not corrected.
    let (found, rejected, _) = series_of(&images(&[0, 1, 2, 3, 4, 5]));
    assert_eq!((found.len(), &rejected[..]), (6, ""));
}

#[test]
fn numbers_of_every_width_are_recorded() {
    for width in [8, 16, 31, 32, 40] {
        let last = u64::MAX >> (64 - width);
        let mut decoder = Dectris::new(LIMITS);
        let endless = message("start", 3, |out| {
            out.str("series_id")
                .unwrap()
                .u64(7)
                .unwrap()
                .str("series_unique_id")
                .unwrap()
                .str("01ABC")
                .unwrap();
            out.str("channels").unwrap().array(1).unwrap().str("a").unwrap();
        });
        let messages = [vec![endless], images(&[0, last - 1, last, last + 1, last]), vec![end(7)]].concat();
        let found = items(&mut decoder, &messages).unwrap();
        let rejected = rejected(&mut decoder);
        if width > 32 {
            // More images would be missing than a series has.
            assert_eq!(
                (found.len(), rejected.starts_with("4 image contradictory: ")),
                (3, true),
                "{rejected}"
            );
            continue;
        }
        let sequence = |item: &String| item.split(' ').nth(1).and_then(|text| text.parse().ok());
        let numbers: Vec<u64> = found[1..5].iter().filter_map(sequence).collect();
        assert_eq!((numbers, &rejected[..]), (vec![0, last - 1, last, last + 1], ""));
        assert_eq!(decoder.remarks(), ["repeated images, identical to those that are recorded: 1"]);
    }
}

#[test]
fn a_lost_connection_rejects_only_what_arrived_in_part() {
    let mut bytes = frames(&[vec![start(7, &["a"])], images(&[0, 1])].concat());
    let whole = bytes.len();
    bytes.extend(framed(&images(&[2])));
    for cut in [whole, whole + 1, whole + 9, whole + 10, bytes.len() - 1] {
        let mut decoder = Dectris::new(LIMITS);
        // Arrives at once, and nothing is taken before the connection is lost.
        let Input::Bytes(space) = decoder.input() else { panic!("it reads a connection") };
        space[..cut].copy_from_slice(&bytes[..cut]);
        decoder.received(cut, 0);
        decoder.disconnected();
        let found = items_of(&mut decoder, &[]).unwrap();
        assert_eq!(found, ["a [2, 3] None", "0 0 1782900000500 0", "0 1 1782900001000 1"], "{cut}");
        let expected = "1 message incomplete: the connection was lost within a message";
        assert_eq!(rejected(&mut decoder), if cut == whole { "" } else { expected }, "{cut}");
    }
}

#[test]
fn images_that_wait_are_handed_out_at_the_end() {
    let until = |end: fn(&mut Dectris)| {
        let mut decoder = Dectris::new(LIMITS);
        let found = items(&mut decoder, &[vec![start(7, &["a"])], images(&[0, 2, 3])].concat()).unwrap();
        assert_eq!(found.len(), 2);
        end(&mut decoder);
        items_of(&mut decoder, &[]).unwrap()
    };
    let expected = ["0 2 1782900001500 2", "0 3 1782900002000 3"];
    assert_eq!(
        (until(Dectris::disconnected), until(|it| it.finish(0))),
        (expected.map(Into::into).into(), expected.map(Into::into).into())
    );
    let again = until(Dectris::reconnect);
    assert_eq!(again, [&["a [2, 3] None"], &expected[..]].concat());
}

#[test]
fn a_channel_that_is_missing_in_an_image_does_not_stop_the_others() {
    let channels = ["a", "b"];
    let messages = [start(7, &channels), image(7, 0, &["b"], None), image(7, 1, &channels, None), end(7)];
    let found = items(&mut Dectris::new(LIMITS), &messages).unwrap();
    let expected = ["1 0 1782900000500 0", "0 1 1782900001000 1", "1 1 1782900001000 11", "end 4 of 2"];
    assert_eq!(found[1..], expected);
}

#[test]
fn a_start_without_a_format_takes_that_of_the_first_image() {
    let bare = message("start", 4, |out| {
        out.str("series_id").unwrap().u64(7).unwrap().str("series_unique_id").unwrap().str("01ABC").unwrap();
        out.str("channels").unwrap().array(1).unwrap().str("a").unwrap();
        out.str("number_of_images").unwrap().u64(u64::MAX).unwrap();
    });
    let mut decoder = Dectris::new(LIMITS);
    let found = items(&mut decoder, &[bare, image(7, 0, &["a"], None), end(7)]).unwrap();
    assert_eq!(found, ["a [2, 3] None", "0 0 1782900000500 0", "end 0 of 1"]);
}

#[test]
fn messages_need_no_tag_and_may_have_more_of_them() {
    let series = [start(7, &["a"]), image(7, 0, &["a"], None), end(7)];
    let expected = items(&mut Dectris::new(LIMITS), &series).unwrap();
    assert!(series.iter().all(|message| message.starts_with(&[0xD9, 0xD9, 0xF7])));
    let bare = series.each_ref().map(|message| message[3..].to_vec());
    let twice = series.each_ref().map(|message| [&[0xD9, 0xD9, 0xF7], &message[..]].concat());
    for other in [bare, twice] {
        assert_eq!(items(&mut Dectris::new(LIMITS), &other).unwrap(), expected);
    }
}

#[test]
fn messages_without_lengths_are_read() {
    let mut start = Encoder::new(Vec::new());
    start.tag(Tag::new(55_799)).unwrap().begin_map().unwrap().str("type").unwrap().str("start").unwrap();
    start.str("series_id").unwrap().u64(7).unwrap();
    start.begin_str().unwrap().str("series_uni").unwrap().str("que_id").unwrap().end().unwrap();
    start.str("01ABC").unwrap().u8(9).unwrap().str("a number as key").unwrap();
    start.str("channels").unwrap().begin_array().unwrap().str("a").unwrap().end().unwrap();
    start
        .str("goniometer")
        .unwrap()
        .begin_map()
        .unwrap()
        .str("phi")
        .unwrap()
        .f32(0.5)
        .unwrap()
        .end()
        .unwrap();
    start.str("detector_translation").unwrap().begin_array().unwrap();
    start.f64(1.5).unwrap().i8(-1).unwrap().end().unwrap().end().unwrap();
    let mut image = Encoder::new(Vec::new());
    image.begin_map().unwrap().str("type").unwrap().str("image").unwrap();
    image.str("series_id").unwrap().u64(7).unwrap().str("series_unique_id").unwrap().str("01ABC").unwrap();
    image
        .str("image_id")
        .unwrap()
        .u64(0)
        .unwrap()
        .str("data")
        .unwrap()
        .begin_map()
        .unwrap()
        .str("a")
        .unwrap();
    image
        .tag(Tag::new(40))
        .unwrap()
        .begin_array()
        .unwrap()
        .begin_array()
        .unwrap()
        .u8(2)
        .unwrap()
        .u8(3)
        .unwrap();
    image.end().unwrap().tag(Tag::new(69)).unwrap().begin_bytes().unwrap().bytes(&[5; 12]).unwrap();
    image.end().unwrap().end().unwrap().end().unwrap().end().unwrap();
    let mut decoder = Dectris::new(LIMITS);
    let found = items(&mut decoder, &[start.into_writer(), image.into_writer(), end(7)]).unwrap();
    assert_eq!(
        (found, rejected(&mut decoder)),
        (["a [2, 3] None", "0 0 0 5", "end 0 of 1"].map(Into::into).into(), String::new())
    );
    let of = |key: &str| decoder.metadata().get(key).map(String::as_str);
    assert_eq!((of("goniometer/phi"), of("detector_translation")), (Some("0.5"), Some("1.5, -1")));
}

#[test]
fn an_image_is_recorded_whatever_its_times_are() {
    let timed = |id: u64, put: &dyn Fn(&mut Out)| {
        message("image", 6, |out| {
            out.str("series_id")
                .unwrap()
                .u64(7)
                .unwrap()
                .str("series_unique_id")
                .unwrap()
                .str("01ABC")
                .unwrap();
            out.str("image_id")
                .unwrap()
                .u64(id)
                .unwrap()
                .str("data")
                .unwrap()
                .map(1)
                .unwrap()
                .str("a")
                .unwrap();
            array(out, (2, 3), 69, &[1; 12], None);
            put(out);
        })
    };
    let images = [
        timed(0, &|out| {
            drop(
                out.str("series_date").unwrap().null().unwrap().str("start_time").unwrap().null().map(|_| ()),
            )
        }),
        timed(1, &|out| {
            out.str("series_date").unwrap().tag(Tag::new(1)).unwrap().u64(2_000_000_000).unwrap();
            out.str("start_time").unwrap().array(2).unwrap().u64(1).unwrap().u64(0).unwrap();
        }),
    ];
    let (found, rejected, _) = series_of(&images);
    assert_eq!((found.len(), &rejected[..]), (2, ""));
}

/// A sample of `tests/samples/dectris`, which has an account of their origin.
macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples/dectris/", $name, ".cbor"))
            .to_vec()
    };
}

#[test]
fn series_as_detectors_send_them_are_recorded() {
    let series = [
        [
            sample!("eiger2-start"),
            sample!("eiger2-image-0"),
            sample!("eiger2-image-1"),
            sample!("eiger2-end"),
        ],
        [
            sample!("difference-start"),
            sample!("difference-image-0"),
            sample!("difference-image-1"),
            sample!("difference-end"),
        ],
    ];
    let streams = [
        "threshold_1 [514, 16] Some(BitshuffleLz4)",
        "threshold_1 [514, 16] Some(Lz4), threshold_2 [514, 16] Some(Lz4), difference [514, 16] Some(Lz4)",
    ];
    for (messages, (streams, channels)) in series.iter().zip(streams.into_iter().zip([1, 3])) {
        let mut decoder = Dectris::new(LIMITS);
        let found = items(&mut decoder, messages).unwrap();
        assert_eq!(
            (&found[0][..], found.len(), rejected(&mut decoder)),
            (streams, 2 + 2 * channels, String::new())
        );
        // The date of the series, and 20 ms for each image.
        assert!(found[1].starts_with("0 0 1676040545281 "), "{found:?}");
        assert!(found[1 + channels].starts_with("0 1 1676040545301 "), "{found:?}");
        let of = |key: &str| decoder.metadata().get(key).map(String::as_str);
        assert_eq!(of("arm_date"), Some("2023-10-03T17:47:48.329+02:00"));
        assert_eq!((of("goniometer/omega/increment"), of("sensor_material")), (Some("0.1"), Some("Si")));
        assert_eq!(
            (of("threshold_energy/threshold_2"), of("beam_center_y")),
            (Some("18900.42"), Some("2163.621048575148"))
        );
    }
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
