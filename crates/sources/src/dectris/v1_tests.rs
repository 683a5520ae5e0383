//! Series of Stream V1 as a detector sends them.
use keepup_stream::zmtp::{frame_header, greeting, ready};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::dectris::Dectris;
use crate::error::DetectorError;
use crate::{Decoder, Input, Item, Limits};

const LIMITS: Limits = Limits { message_bytes_max: 1 << 20, event_bytes_max: u64::MAX };
/// Time of arrival of everything, ns.
const ARRIVAL_NS: u64 = 5_000_000_000;

type Frames = Vec<Vec<u8>>;

fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn header(series: u64, config: Option<Value>) -> Frames {
    let detail = if config.is_some() { "basic" } else { "none" };
    let head = json!({"htype": "dheader-1.0", "series": series, "header_detail": detail});
    std::iter::once(head).chain(config).map(|part| text(&part)).collect()
}

fn image(series: u64, frame: u64, encoding: &str, bytes: &[u8]) -> Frames {
    vec![
        text(&json!({"htype": "dimage-1.0", "series": series, "frame": frame, "hash": "fc67f000d08fe6b3"})),
        text(&json!({"htype": "dimage_d-1.0", "shape": [3, 2], "type": "uint16", "encoding": encoding,
                     "size": bytes.len()})),
        bytes.to_vec(),
        text(&json!({"htype": "dconfig-1.0", "start_time": frame.saturating_mul(1_000_000_000),
                     "stop_time": (frame + 1).saturating_mul(1_000_000_000), "real_time": 1_000_000_000})),
    ]
}

fn end(series: u64) -> Frames {
    vec![text(&json!({"htype": "dseries_end-1.0", "series": series}))]
}

/// Items in words, with the payload of events; metadata.
fn items(messages: &[Frames]) -> Result<(Vec<String>, BTreeMap<String, String>), DetectorError> {
    let (found, decoder) = decoded(messages)?;
    Ok((found, decoder.metadata().clone()))
}

fn remarks(messages: &[Frames]) -> String {
    decoded(messages).unwrap().1.remarks().join(", ")
}

fn decoded(messages: &[Frames]) -> Result<(Vec<String>, Dectris), DetectorError> {
    let mut bytes = [&greeting()[..], &ready("PUSH")].concat();
    for message in messages {
        for (index, frame) in message.iter().enumerate() {
            bytes.extend_from_slice(&frame_header(frame.len() as u64, index + 1 == message.len()));
            bytes.extend_from_slice(frame);
        }
    }
    let (mut decoder, mut at, mut found) = (Dectris::new(LIMITS), 0, Vec::new());
    loop {
        while let Some(item) = decoder.item()? {
            found.push(match item {
                Item::Streams(streams) => {
                    let streams = streams.iter().map(|s| format!("{} {:?}", s.name, s.shape));
                    streams.collect::<Vec<_>>().join(", ")
                }
                Item::Event(event) => {
                    format!(
                        "{} at {} s: {:?}",
                        event.sequence,
                        event.timestamp_ns / 1_000_000_000,
                        event.payload
                    )
                }
                Item::End { events, .. } => format!("end {events}"),
                other => format!("{other:?}"),
            });
            decoder.take();
        }
        if at == bytes.len() {
            return Ok((found, decoder));
        }
        let Input::Bytes(space) = decoder.input() else { panic!("it reads a connection") };
        let count = space.len().min(50).min(bytes.len() - at);
        space[..count].copy_from_slice(&bytes[at..at + count]);
        decoder.received(count, ARRIVAL_NS);
        at += count;
    }
}

/// The error at which the decoder ends, or reason and detail of what is rejected.
fn refused(messages: &[Frames]) -> String {
    let rows = match decoded(messages) {
        Ok((_, mut decoder)) => decoder.rejected(),
        Err(error) => return error.to_string(),
    };
    rows.iter().map(|row| format!("{}: {}", row.reason.name(), row.detail)).collect()
}

#[test]
fn a_series_has_its_images_times_and_configuration() {
    let config = json!({"nimages": 3, "ntrigger": 2, "beam_center_x": 1.5, "description": "Eiger",
                        "detector_orientation": [1, 0, 0], "nested": {"left": "out"}});
    let plain = [7; 12];
    let (found, metadata) =
        items(&[header(4, Some(config)), image(4, 0, "<", &plain), image(4, 2, "<", &plain), end(4)])
            .unwrap();
    // The first image arrives at 5 s, when it ends: the series began at 4 s.
    let expected = [
        "image [2, 3]".to_owned(),
        format!("0 at 4 s: {plain:?}"),
        format!("2 at 6 s: {plain:?}"),
        "end 6".into(),
    ];
    assert_eq!(found, expected);
    let of = |key: &str| metadata.get(key).map(String::as_str);
    assert_eq!(
        (of("series_id"), of("beam_center_x"), of("description")),
        (Some("4"), Some("1.5"), Some("Eiger"))
    );
    assert_eq!((of("detector_orientation"), of("nested")), (Some("1, 0, 0"), None));
}

#[test]
fn an_lz4_block_gets_the_header_of_the_hdf5_filter() {
    let (found, _) = items(&[header(4, None), image(4, 0, "lz4<", &[9; 5]), end(4)]).unwrap();
    let expected = [&[0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 12, 0, 0, 0, 5][..], &[9; 5]].concat();
    assert_eq!(found[1], format!("0 at 4 s: {expected:?}"));
    // What bitshuffle writes has its header already.
    let chunk = [&12_u64.to_be_bytes()[..], &[9; 5]].concat();
    let (found, _) = items(&[header(4, None), image(4, 0, "bs16-lz4<", &chunk), end(4)]).unwrap();
    assert_eq!(found[1], format!("0 at 4 s: {chunk:?}"));
}

#[test]
fn what_the_user_appended_is_no_configuration() {
    let appended = |detail: &str| {
        let head = json!({"htype": "dheader-1.0", "series": 4, "header_detail": detail});
        vec![text(&head), b"sample 7, {".to_vec()]
    };
    let (found, metadata) = items(&[appended("none"), image(4, 0, "<", &[7; 12]), end(4)]).unwrap();
    assert_eq!((found.len(), metadata.len()), (3, 1));
    let messages = [appended("basic"), image(4, 0, "<", &[7; 12])];
    assert_eq!(items(&messages).unwrap().0.len(), 2);
    assert!(remarks(&messages).contains("the configuration in the header is not recorded: expected value"));
}

/// A header with a map for each of `maps`: htype, type, width, height and bytes.
fn header_with_maps(series: u64, maps: &[(&str, &str, [u64; 2], &[u8])]) -> Frames {
    let head = json!({"htype": "dheader-1.0", "series": series, "header_detail": "all"});
    let mut frames = vec![text(&head), text(&json!({"nimages": 1}))];
    for (htype, kind, shape, bytes) in maps {
        frames.push(text(&json!({"htype": htype, "type": kind, "shape": shape})));
        frames.push(bytes.to_vec());
    }
    frames
}

#[test]
fn maps_of_the_header_are_events_of_their_own_streams() {
    let maps = [
        ("flatfield-1.0", "float32", [3, 2], &[1; 24][..]),
        ("dpixelmask-1.0", "uint32", [3, 2], &[2; 24]),
        ("dcountrate_table-1.0", "float32", [2, 1], &[3; 8]),
    ];
    let mut header = header_with_maps(4, &maps);
    header.push(b"appended by the user".to_vec());
    let (found, _) = items(&[header, image(4, 0, "<", &[7; 12]), end(4)]).unwrap();
    let streams = "image [2, 3], image-flatfield [2, 3], image-pixel_mask [2, 3], \
                   image-countrate_correction_table [1, 2]";
    let maps = [format!("0 at 5 s: {:?}", [1; 24]), format!("0 at 5 s: {:?}", [2; 24])];
    let rest = [format!("0 at 5 s: {:?}", [3; 8]), format!("0 at 4 s: {:?}", [7; 12]), "end 1".into()];
    assert_eq!(found, [&[streams.to_owned()], &maps[..], &rest].concat());
}

#[test]
fn malformed_maps_do_not_stop_the_images() {
    let maps = [
        ("dflatfield-1.0", "float32", [3, 2], &[1; 23][..]),
        ("dpixelmask-1.0", "float16", [3, 2], &[2; 24]),
        ("dother-1.0", "uint32", [3, 2], &[2; 24]),
        ("dcountrate_table-1.0", "float32", [u64::MAX, u64::MAX], &[3; 8]),
    ];
    let mut header = header_with_maps(4, &maps);
    header.extend([b"no JSON".to_vec(), b"no map".to_vec()]);
    let (found, _) = items(&[header, image(4, 0, "<", &[7; 12]), end(4)]).unwrap();
    assert_eq!(found.len(), 3, "{found:?}");
    let remarks = remarks(&[header_with_maps(4, &maps)]);
    assert!(remarks.contains("23 bytes do not match the type f32 and the shape [2, 3]"), "{remarks}");
    assert!(
        remarks.contains("the map in frame 5 is not recorded: unsupported type \"float16\""),
        "{remarks}"
    );
    assert!(
        remarks.contains("the map in frame 7 is not recorded: unknown htype \"dother-1.0\""),
        "{remarks}"
    );
    assert!(remarks.contains("8 bytes do not match"), "{remarks}");
}

#[test]
fn a_series_without_images_has_no_streams() {
    assert_eq!(items(&[header(4, None), end(4)]).unwrap().0, ["end 0"]);
}

#[test]
fn contradictions_and_gaps_in_messages_are_rejected() {
    let plain = [7; 12];
    let cases = [
        (vec![header(4, None), image(5, 0, "<", &plain)], "image 0 is of series 5"),
        (vec![header(4, None), image(4, 0, "<", &plain[1..])], "has 11 bytes, not 12"),
        (vec![header(4, None), image(4, 0, "bs32-lz4<", &plain)], "unsupported encoding \"bs32-lz4<\""),
        (vec![header(4, None), image(4, 0, "lz4<", &plain)], "as long as the image"),
        (vec![header(4, None), image(4, 0, "<", &plain)[..2].to_vec()], "malformed: it has only 2 frames"),
        (vec![header(4, None), image(4, 0, "bs16-lz4<", &plain)], "contradictory: image 0"),
        (vec![header(4, None), image(4, 1 << 50, "<", &plain)], "too large"),
        (vec![vec![b"{\"htype\": \"dother-1.0\", \"series\": 1}".to_vec()]], "unknown htype \"dother-1.0\""),
        (vec![vec![b"{\"htype\"".to_vec()]], "EOF"),
        (vec![vec![vec![0xA0], vec![0xA0]]], "the first one is not JSON"),
    ];
    for (messages, why) in cases {
        let error = refused(&messages);
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn an_image_without_times_is_recorded() {
    let mut bare = image(4, 0, "<", &[7; 12]);
    bare.truncate(3);
    let (found, _) = items(&[header(4, None), bare, end(4)]).unwrap();
    assert_eq!(found[1], format!("0 at 5 s: {:?}", [7; 12]));
}

#[test]
fn repeated_and_late_images_do_not_end_the_series() {
    let numbers = [0, 1, 1, 3, 2, 3, 4];
    let images = numbers.map(|number| image(4, number, "lz4<", &[number as u8; 5]));
    let (found, mut decoder) = decoded(&[&[header(4, None)][..], &images, &[end(4)]].concat()).unwrap();
    let recorded: Vec<_> = found[1..6].iter().filter_map(|item| item.chars().next()).collect();
    assert_eq!((recorded, found.len()), (vec!['0', '1', '2', '3', '4'], 7));
    assert!(found[4].ends_with("3, 3, 3, 3, 3]"), "the header of the filter is that of its own image");
    assert_eq!(decoder.remarks(), ["repeated images, identical to those that are recorded: 2"]);
    assert!(decoder.rejected().is_empty());
}

proptest! {
    #[test]
    fn damaged_messages_do_not_make_it_panic(at in 0_usize..4, byte in 0_usize..300, with in any::<u8>()) {
        let mut message = image(4, 0, "lz4<", &[7; 9]);
        let place = byte % message[at].len();
        message[at][place] = with;
        // Any result will do.
        let _ = items(&[header(4, None), message, end(4)]);
    }
}
