//! A session with a server that is written here from the protocol's description.
use keepup_stream::wire::{Compression, ElementType};
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { message_bytes_max: 1 << 20, event_bytes_max: 1 << 20 };
const SERVER_ID: u32 = 77;
const WIDTH: usize = 5;
const HEIGHT: usize = 3;

/// Bytes in the byte order of a server.
#[derive(Clone, Default)]
pub(super) struct Out {
    pub(super) bytes: Vec<u8>,
    is_big_endian: bool,
}

impl Out {
    pub(super) fn new(is_big_endian: bool) -> Self {
        Self { bytes: Vec::new(), is_big_endian }
    }

    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(super) fn number<const N: usize>(self, little_endian: [u8; N]) -> Self {
        let mut bytes = little_endian;
        if self.is_big_endian {
            bytes.reverse();
        }
        self.raw(&bytes)
    }

    pub(super) fn u32(self, value: u32) -> Self {
        self.number(value.to_le_bytes())
    }

    pub(super) fn size(self, size: usize) -> Self {
        if size < 254 { self.raw(&[size as u8]) } else { self.raw(&[254]).u32(size as u32) }
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.size(text.len()).raw(text.as_bytes())
    }

    /// Head of a structure's type.
    fn structure(self, id: &str, fields: usize) -> Self {
        self.raw(&[0x80]).text(id).size(fields)
    }

    fn bits(self, bits: &[usize]) -> Self {
        let mut bytes = vec![0; bits.iter().max().map_or(0, |bit| bit / 8 + 1)];
        bits.iter().for_each(|bit| bytes[bit / 8] |= 1 << (bit % 8));
        self.size(bytes.len()).raw(&bytes)
    }
}

#[derive(Clone, Copy)]
struct Server {
    is_big_endian: bool,
    /// Length of segments; 0: none.
    segment: usize,
    /// Whether it refers to types by numbers, and sends the pixels as a value of their own type.
    is_caching: bool,
}

const PLAIN: Server = Server { is_big_endian: false, segment: 0, is_caching: false };

/// An update of the PV. Fields that are `None` have not changed.
#[derive(Clone, Default)]
struct Update {
    id: Option<i32>,
    /// Index of the union's member, and the bytes of the array.
    value: Option<(u8, Vec<u8>)>,
    codec: Option<(&'static str, i32)>,
    seconds: Option<i64>,
    shape: Option<Vec<i32>>,
    overrun: bool,
}

fn pixels(id: i32) -> Vec<u16> {
    (0..WIDTH * HEIGHT).map(|at| (at as i32 * 259 + id * 7) as u16).collect()
}

fn payload(id: i32) -> Vec<u8> {
    pixels(id).iter().flat_map(|pixel| pixel.to_le_bytes()).collect()
}

impl Server {
    fn out(self) -> Out {
        Out::new(self.is_big_endian)
    }

    fn message(self, command: u8, body: &Out) -> Vec<u8> {
        let order = if self.is_big_endian { 0x80 } else { 0 };
        let frame = |flags: u8, body: &[u8]| {
            let head = self.out().raw(&[0xCA, 2, 0x40 | order | flags, command]);
            head.u32(body.len() as u32).raw(body).bytes
        };
        let body = &body.bytes;
        if self.segment == 0 || body.len() <= self.segment {
            return frame(0, body);
        }
        let count = body.len().div_ceil(self.segment);
        let segments = body.chunks(self.segment).enumerate().map(|(index, chunk)| match index {
            0 => frame(0x10, chunk),
            index if index + 1 == count => frame(0x20, chunk),
            // A control message between segments is allowed.
            _ => [self.control(0), frame(0x30, chunk)].concat(),
        });
        segments.collect::<Vec<_>>().concat()
    }

    fn control(self, command: u8) -> Vec<u8> {
        let order = if self.is_big_endian { 0x80 } else { 0 };
        self.out().raw(&[0xCA, 2, 0x41 | order, command]).u32(0).bytes
    }

    fn greeting(self) -> Vec<u8> {
        let body =
            self.out().u32(0x10000).number(0x7FFF_u16.to_le_bytes()).size(2).text("anonymous").text("ca");
        [self.control(2), self.message(1, &body)].concat()
    }

    fn validated(self) -> Vec<u8> {
        self.message(9, &self.out().raw(&[0xFF]))
    }

    fn channel(self, id: u32) -> Vec<u8> {
        self.message(7, &self.out().u32(id).u32(SERVER_ID).raw(&[0xFF]))
    }

    fn time_type(self, out: Out) -> Out {
        let body = out.structure("time_t", 3);
        body.text("secondsPastEpoch")
            .raw(&[0x23])
            .text("nanoseconds")
            .raw(&[0x22])
            .text("userTag")
            .raw(&[0x22])
    }

    fn image_type(self, out: Out) -> Out {
        let out = out.structure("epics:nt/NTNDArray:1.0", 8).text("value");
        let out = match self.is_caching {
            true => out.raw(&[0x82]),
            false => {
                let union = out.raw(&[0x81]).text("").size(2);
                union.text("ubyteValue").raw(&[0x2C]).text("ushortValue").raw(&[0x2D])
            }
        };
        let out = out.text("codec").structure("codec_t", 2).text("name").raw(&[0x60]);
        let out = out.text("parameters").raw(&[0x82]).text("compressedSize").raw(&[0x23]);
        let out = out.text("uniqueId").raw(&[0x22]).text("dataTimeStamp");
        let out = match self.is_caching {
            true => self.time_type(out.raw(&[0xFD]).number(3_u16.to_le_bytes())),
            false => self.time_type(out),
        };
        let out = out.text("timeStamp");
        let out = match self.is_caching {
            true => out.raw(&[0xFE]).number(3_u16.to_le_bytes()),
            false => self.time_type(out),
        };
        let out = out.text("dimension").raw(&[0x88]).structure("dimension_t", 3).text("size").raw(&[0x22]);
        let out = out.text("binning").raw(&[0x22]).text("reverse").raw(&[0x00]);
        let out = out.text("attribute").raw(&[0x88]).structure("NTAttribute", 3).text("name").raw(&[0x60]);
        out.text("value").raw(&[0x82]).text("tags").raw(&[0x68])
    }

    fn init(self, id: u32) -> Vec<u8> {
        self.message(13, &self.image_type(self.out().u32(id).raw(&[0x08, 0xFF])))
    }

    fn update(self, id: u32, update: &Update) -> Vec<u8> {
        // 0 all, 1 value, 2 codec (3, 4), 5 size, 6 uniqueId, 7 dataTimeStamp (8 to 10), 11 timeStamp,
        // 15 dimension, 16 attribute.
        let mut bits = Vec::new();
        let mut out = self.out();
        if let Some((member, array)) = &update.value {
            bits.push(1);
            let size = usize::from(*member) + 1;
            let selected = if self.is_caching { 0x2C + member } else { *member };
            out = out.raw(&[selected]).size(array.len() / size);
            for pixel in array.chunks(size) {
                let mut pixel = pixel.to_vec();
                if self.is_big_endian {
                    pixel.reverse();
                }
                out = out.raw(&pixel);
            }
        }
        if let Some((name, original)) = update.codec {
            bits.extend([3, 4]);
            out = out.text(name).raw(&[0x22]).u32(original as u32);
        }
        if let Some(unique) = update.id {
            bits.push(6);
            out = out.u32(unique as u32);
        }
        if let Some(seconds) = update.seconds {
            bits.push(7);
            out = out.number(seconds.to_le_bytes()).u32(5).u32(0);
        }
        if let Some(shape) = &update.shape {
            bits.push(15);
            out = out.size(shape.len());
            for size in shape {
                out = out.raw(&[1]).u32(*size as u32).u32(1).raw(&[0]);
            }
            bits.push(16);
            out = out.size(3).raw(&[1]).text("Gain").raw(&[0x43]).number(1.5_f64.to_le_bytes()).size(0);
            out = out.raw(&[0, 1]).text("Mode").raw(&[0x60]).text("fast").size(2).text("a").text("b");
        }
        let body = self.out().u32(id).raw(&[0]).bits(&bits).raw(&out.bytes);
        self.message(13, &body.bits(if update.overrun { &[1] } else { &[] }))
    }

    /// The first update of a monitor: an image of another size, from before.
    fn old(self, id: u32, unique: i32) -> Vec<u8> {
        let (value, shape) = (Some((0, vec![1; 4])), Some(vec![2, 2]));
        self.update(id, &Update { id: Some(unique), value, shape, ..Update::default() })
    }

    fn image(self, id: u32, unique: i32) -> Vec<u8> {
        self.update(id, &image(unique))
    }

    /// A session up to the first update.
    fn session(self, id: u32) -> Vec<u8> {
        [self.greeting(), self.validated(), self.channel(id), self.init(id)].concat()
    }
}

fn image(unique: i32) -> Update {
    Update {
        id: Some(unique),
        value: Some((1, payload(unique))),
        codec: Some(("", 6)),
        seconds: Some(1000 + i64::from(unique)),
        shape: Some(vec![WIDTH as i32, HEIGHT as i32]),
        overrun: false,
    }
}

fn decoder() -> PvAccess {
    PvAccess::new(Options::new("13SIM1:Pva1:Image".into()), LIMITS)
}

/// What the decoder hands out.
#[derive(Clone, Debug, PartialEq)]
enum Found {
    Streams(Vec<StreamInfo>),
    Event(u64, u64, Option<LossCause>, Vec<u8>),
    Error(String),
}

fn feed(decoder: &mut PvAccess, mut bytes: &[u8], piece: usize) -> Vec<Found> {
    let mut found = Vec::new();
    loop {
        loop {
            match decoder.item() {
                Ok(None) => break,
                Err(error) => {
                    found.push(Found::Error(error.to_string()));
                    return found;
                }
                Ok(Some(Item::Streams(streams))) => found.push(Found::Streams(streams.to_vec())),
                Ok(Some(Item::Event(event))) => found.push(Found::Event(
                    event.sequence,
                    event.timestamp_ns,
                    event.missing,
                    event.payload.to_vec(),
                )),
                Ok(Some(other)) => panic!("a monitor has no {other:?}"),
            }
            decoder.take();
        }
        if bytes.is_empty() {
            return found;
        }
        let Input::Bytes(space) = decoder.input() else { panic!("no bytes wanted") };
        let count = space.len().min(piece).min(bytes.len());
        assert!(count > 0);
        space[..count].copy_from_slice(&bytes[..count]);
        decoder.received(count, 42);
        bytes = &bytes[count..];
    }
}

/// Messages that were sent: command and body.
fn sent(decoder: &mut PvAccess) -> Vec<(u8, Vec<u8>)> {
    let bytes = decoder.outgoing();
    let (mut rest, mut found) = (&bytes[..], Vec::new());
    while let Some((head, tail)) = rest.split_first_chunk::<8>() {
        assert_eq!((head[0], head[1]), (0xCA, 2));
        let length = [head[4], head[5], head[6], head[7]];
        let length =
            if head[2] & 0x80 != 0 { u32::from_be_bytes(length) } else { u32::from_le_bytes(length) };
        let (body, tail) = tail.split_at(length as usize);
        found.push((head[3], body.to_vec()));
        rest = tail;
    }
    found
}

fn stream() -> StreamInfo {
    let shape = vec![HEIGHT as u64, WIDTH as u64];
    StreamInfo {
        id: 0,
        name: "13SIM1:Pva1:Image".into(),
        element: ElementType::U16,
        shape,
        compression: None,
    }
}

fn event(sequence: u64, unique: i32) -> Found {
    Found::Event(sequence, (1000 + unique as u64) * 1_000_000_000 + 5, None, payload(unique))
}

fn error(found: &[Found]) -> String {
    match found.last() {
        Some(Found::Error(error)) => error.clone(),
        other => panic!("{other:?}"),
    }
}

/// What is rejected: count, unit and reason of each kind, and the detail of the first.
fn rejected(decoder: &mut PvAccess) -> String {
    let rows = decoder.rejected().into_iter();
    rows.map(|row| format!("{} {} {}: {}", row.count, row.unit, row.reason.name(), row.detail))
        .collect::<Vec<_>>()
        .join("; ")
}

#[test]
fn the_recorder_asks_for_a_pipelined_monitor() {
    let mut decoder = decoder();
    assert_eq!(feed(&mut decoder, &PLAIN.greeting(), 99), []);
    let answer = PLAIN.out().u32(0x10000).raw(&[0xFF, 0x7F, 0, 0]).text("anonymous").raw(&[0xFF]);
    assert_eq!(sent(&mut decoder), [(1, answer.bytes)]);
    feed(&mut decoder, &PLAIN.validated(), 99);
    let create = PLAIN.out().raw(&[1, 0]).u32(2).text("13SIM1:Pva1:Image");
    assert_eq!(sent(&mut decoder), [(7, create.bytes)]);
    feed(&mut decoder, &PLAIN.channel(2), 99);
    let init = sent(&mut decoder).remove(0);
    assert_eq!((init.0, &init.1[..9]), (13, &[77, 0, 0, 0, 2, 0, 0, 0, 0x88][..]));
    let options = PLAIN.out().text("pipeline").raw(&[0x60]).text("queueSize").raw(&[0x60]);
    let options = options.text("true").text("16").u32(16).bytes;
    assert!(init.1.ends_with(&options), "{init:?}");
    feed(&mut decoder, &PLAIN.init(2), 99);
    assert_eq!(sent(&mut decoder), [(13, vec![77, 0, 0, 0, 2, 0, 0, 0, 0x44])]);
}

#[test]
fn updates_are_acknowledged_when_they_were_taken() {
    let mut decoder = decoder();
    let ack = |count| [(13, vec![77, 0, 0, 0, 2, 0, 0, 0, 0x80, count, 0, 0, 0])];
    feed(&mut decoder, &PLAIN.session(2), 999);
    sent(&mut decoder);
    feed(&mut decoder, &PLAIN.old(2, 1), 999);
    assert_eq!(sent(&mut decoder), ack(1));
    for unique in 2..8 {
        feed(&mut decoder, &PLAIN.image(2, unique), 999);
    }
    assert_eq!(sent(&mut decoder), ack(6));
    let Input::Bytes(space) = decoder.input() else { panic!() };
    let last = PLAIN.image(2, 8);
    space[..last.len()].copy_from_slice(&last);
    decoder.received(last.len(), 0);
    assert!(matches!(decoder.item(), Ok(Some(Item::Event(_)))));
    assert_eq!(sent(&mut decoder), []);
    decoder.take();
    assert_eq!(sent(&mut decoder), ack(1));
}

#[test]
fn a_silent_connection_sends_echo_requests() {
    let mut decoder = decoder();
    decoder.tick(5);
    feed(&mut decoder, &PLAIN.session(2), 999);
    sent(&mut decoder);
    decoder.tick(10);
    decoder.tick(9_999_999_999);
    assert_eq!(sent(&mut decoder), []);
    decoder.tick(10_000_000_010);
    assert_eq!(sent(&mut decoder), [(2, vec![])]);
    // The answer changes nothing.
    let echo = PLAIN.message(2, &PLAIN.out());
    assert_eq!(feed(&mut decoder, &[echo, PLAIN.old(2, 1), PLAIN.image(2, 2)].concat(), 7).len(), 2);
}

proptest! {
    #[test]
    fn images_are_decoded_however_they_arrive(
        is_big_endian: bool, is_caching: bool, segment in 0_usize..40, piece in 1_usize..300,
    ) {
        let server = Server { is_big_endian, segment, is_caching };
        let mut bytes = [server.session(2), server.old(2, 6)].concat();
        for unique in [7, 8, 11] {
            bytes.extend(server.image(2, unique));
        }
        let mut decoder = decoder();
        let expected = [Found::Streams(vec![stream()]), event(0, 7), event(1, 8), event(4, 11)];
        let mut found = feed(&mut decoder, &bytes, piece);
        // Image 11 waits for those before it.
        decoder.finish(0);
        found.extend(feed(&mut decoder, &[], piece));
        prop_assert_eq!(found, expected);
        let metadata = decoder.metadata();
        let value = |key| metadata.get(key).map(String::as_str);
        let found = ["pv", "first_unique_id", "Gain", "Mode"].map(value);
        prop_assert_eq!(found, [Some("13SIM1:Pva1:Image"), Some("7"), Some("1.5"), Some("fast")]);
        prop_assert_eq!(metadata.len(), 4);
    }

    #[test]
    fn damaged_bytes_end_in_an_error_or_in_other_images(
        at in 0_usize..2000, flip in 1_u8.., cut in 0_usize..2000, is_caching: bool, segment in 0_usize..40,
    ) {
        let server = Server { is_caching, segment, ..PLAIN };
        let images = [server.old(2, 6), server.image(2, 7), server.image(2, 8)].concat();
        let mut bytes = [server.session(2), images].concat();
        let at = at % bytes.len();
        bytes[at] ^= flip;
        bytes.truncate(bytes.len() - cut % 50);
        for found in feed(&mut decoder(), &bytes, 1000) {
            if let Found::Event(_, _, _, payload) = found {
                prop_assert!(payload.len() <= 1 << 20);
            }
        }
    }
}

#[test]
fn fields_keep_their_values_until_they_change() {
    let mut decoder = decoder();
    let partial = Update { id: Some(8), value: Some((1, payload(8))), ..Update::default() };
    let nothing = Update { seconds: Some(3), ..Update::default() };
    let same = Update { value: Some((1, payload(9))), overrun: true, ..Update::default() };
    let updates = [image(7), partial, nothing, same].map(|update| PLAIN.update(2, &update)).concat();
    let found = feed(&mut decoder, &[PLAIN.session(2), PLAIN.old(2, 6), updates].concat(), 999);
    let second = |sequence, seconds: u64, unique| {
        Found::Event(sequence, seconds * 1_000_000_000 + 5, None, payload(unique))
    };
    assert_eq!(found[1..], [event(0, 7), second(1, 1007, 8)]);
    assert_eq!(decoder.remarks(), [""; 0]);
    decoder.finish(0);
    let remarks = decoder.remarks().join("; ");
    for what in ["combined because its queue was full: 1", "without an image: 1"] {
        assert!(remarks.contains(what), "{remarks}");
    }
    // Other pixels with the number of the image before.
    assert_eq!(rejected(&mut decoder), "1 image conflicting: image 8 arrived again with other content");
}

#[test]
fn a_reconnected_series_continues() {
    let mut decoder = decoder();
    let begin = [PLAIN.session(2), PLAIN.old(2, 6), PLAIN.image(2, 7)].concat();
    assert_eq!(feed(&mut decoder, &begin, 999).len(), 2);
    let cut = PLAIN.image(2, 8);
    feed(&mut decoder, &cut[..cut.len() / 2], 999);
    assert!(decoder.is_within_message());
    decoder.reconnect();
    // The server repeats the image that was recorded.
    let again = [PLAIN.session(3), PLAIN.image(3, 7), PLAIN.image(3, 9)].concat();
    assert_eq!(feed(&mut decoder, &again, 999), [Found::Streams(vec![stream()]), event(2, 9)]);
    decoder.reconnect();
    // It has a new image.
    let again = [PLAIN.session(4), PLAIN.image(4, 12)].concat();
    assert_eq!(feed(&mut decoder, &again, 999)[1..], [event(5, 12)]);
    decoder.reconnect();
    // It was started again.
    let again = [PLAIN.session(5), PLAIN.old(5, 4711), PLAIN.image(5, 1), PLAIN.image(5, 2)].concat();
    assert_eq!(feed(&mut decoder, &again, 999)[1..], [event(6, 1), event(7, 2)]);
    decoder.finish(0);
    assert_eq!(decoder.remarks(), ["restarts of uniqueId; losses at a restart are unknown: 1"]);
}

#[test]
fn an_image_that_was_not_taken_is_recorded_after_a_reconnection() {
    let mut decoder = decoder();
    feed(&mut decoder, &[PLAIN.session(2), PLAIN.old(2, 6), PLAIN.image(2, 7)].concat(), 999);
    let Input::Bytes(space) = decoder.input() else { panic!() };
    let next = PLAIN.image(2, 8);
    space[..next.len()].copy_from_slice(&next);
    decoder.received(next.len(), 0);
    assert!(matches!(decoder.item(), Ok(Some(Item::Event(_)))));
    decoder.reconnect();
    // The server still has it.
    let again = [PLAIN.session(3), PLAIN.image(3, 8), PLAIN.image(3, 9)].concat();
    assert_eq!(feed(&mut decoder, &again, 999)[1..], [event(1, 8), event(2, 9)]);
}

#[test]
fn a_closed_channel_is_created_again() {
    let mut decoder = decoder();
    feed(&mut decoder, &[PLAIN.session(2), PLAIN.old(2, 6), PLAIN.image(2, 7)].concat(), 999);
    sent(&mut decoder);
    let destroy = PLAIN.message(8, &PLAIN.out().u32(SERVER_ID).u32(2));
    // What arrives for the old channel is ignored.
    assert_eq!(feed(&mut decoder, &[destroy, PLAIN.image(2, 8)].concat(), 999), []);
    decoder.tick(1);
    assert_eq!(sent(&mut decoder), []);
    decoder.tick(1_000_000_001);
    assert_eq!(sent(&mut decoder)[0].0, 7);
    // The PV is not there yet.
    let refused = PLAIN.message(7, &PLAIN.out().u32(3).u32(0).raw(&[2]).text("no such PV").text(""));
    assert_eq!(feed(&mut decoder, &refused, 999), []);
    decoder.tick(2_000_000_000);
    decoder.tick(3_000_000_000);
    let again = [PLAIN.channel(4), PLAIN.init(4), PLAIN.image(4, 10), PLAIN.image(4, 11)].concat();
    let Found::Event(sequence, time, _, bytes) = event(3, 10) else { panic!() };
    let after = Found::Event(sequence, time, Some(LossCause::ConnectionLost), bytes);
    assert_eq!(feed(&mut decoder, &again, 999), [after, event(4, 11)]);
    // The server ends the monitor.
    sent(&mut decoder);
    let end = PLAIN.message(13, &PLAIN.out().u32(4).raw(&[0x10, 0xFF]));
    assert_eq!(feed(&mut decoder, &end, 999), []);
    assert_eq!(sent(&mut decoder), [(8, vec![77, 0, 0, 0, 4, 0, 0, 0])]);
    decoder.finish(0);
    assert_eq!(decoder.remarks(), ["times that the server closed the PV or did not have it again yet: 3"]);
}

#[test]
fn a_pv_that_is_not_there_or_has_no_images_is_refused() {
    let begin = [PLAIN.greeting(), PLAIN.validated()].concat();
    let refused = PLAIN.message(7, &PLAIN.out().u32(2).u32(0).raw(&[2]).text("no such PV").text(""));
    let found = feed(&mut decoder(), &[begin.clone(), refused].concat(), 999);
    assert_eq!(error(&found), "cannot monitor PV: the server has no such PV: no such PV");
    let scalar = PLAIN.out().u32(2).raw(&[0x08, 0xFF]).structure("epics:nt/NTScalar:1.0", 1);
    let scalar = PLAIN.message(13, &scalar.text("value").raw(&[0x43]));
    let found = feed(&mut decoder(), &[begin, PLAIN.channel(2), scalar].concat(), 999);
    assert!(error(&found).ends_with("its type is epics:nt/NTScalar:1.0, not NTNDArray"), "{found:?}");
    let found = feed(&mut decoder(), b"HTTP/1.1 400 Bad Request\r\n\r\n", 999);
    assert!(error(&found).ends_with("the peer did not send a pvAccess header"), "{found:?}");
}

#[test]
fn images_of_another_size_type_or_codec_are_rejected() {
    let turned = Update { shape: Some(vec![HEIGHT as i32, WIDTH as i32]), ..image(8) };
    let bytes = Update { value: Some((0, vec![1; WIDTH * HEIGHT])), ..image(8) };
    let packed = Update { value: Some((0, vec![1; 9])), codec: Some(("lz4", 6)), ..image(8) };
    let short = Update { value: Some((1, vec![1; 8])), ..image(8) };
    let deep = Update { shape: Some(vec![1; 9]), ..image(8) };
    let named = Update { value: Some((0, vec![1; 9])), codec: Some(("a\nb", 6)), ..image(8) };
    let cases = [
        (turned, "contradictory: image 8 is 5x3 u16, uncompressed; the stream has 3x5 u16, uncompressed"),
        (bytes, "contradictory: image 8 is 3x5 u8, uncompressed; the stream"),
        (packed, "contradictory: image 8 is 3x5 u16, lz4; the stream"),
        (short, "contradictory: image 8 has 8 bytes; its dimensions [3, 5] of u16"),
        (deep, "unsupported: image 8 has more than 8 dimensions"),
        (named, "malformed: image 8 has a codec whose name is not valid"),
    ];
    for (update, what) in cases {
        let mut decoder = decoder();
        let images = [PLAIN.image(2, 7), PLAIN.update(2, &update), PLAIN.image(2, 9)].concat();
        let found = feed(&mut decoder, &[PLAIN.session(2), PLAIN.old(2, 6), images].concat(), 999);
        // Image 9 waits for image 8.
        assert_eq!(found[1..], [event(0, 7)]);
        decoder.finish(0);
        assert_eq!(feed(&mut decoder, &[], 1), [event(2, 9)]);
        let rejected = rejected(&mut decoder);
        assert!(rejected.starts_with(&format!("1 image {what}")), "{rejected}");
    }
}

#[test]
fn images_out_of_order_are_recorded_in_their_place() {
    let mut decoder = decoder();
    let begin = [PLAIN.session(2), PLAIN.old(2, 6), PLAIN.image(2, 7)].concat();
    feed(&mut decoder, &begin, 999);
    sent(&mut decoder);
    assert_eq!(feed(&mut decoder, &[PLAIN.image(2, 10), PLAIN.image(2, 9)].concat(), 999), []);
    // Those that wait are acknowledged: the server may have no place for the one before them.
    assert_eq!(sent(&mut decoder), [(13, vec![77, 0, 0, 0, 2, 0, 0, 0, 0x80, 2, 0, 0, 0])]);
    let rest = [PLAIN.image(2, 8), PLAIN.image(2, 9), PLAIN.image(2, 11)].concat();
    let expected = [event(1, 8), event(2, 9), event(3, 10), event(4, 11)];
    assert_eq!(feed(&mut decoder, &rest, 999), expected);
    assert_eq!(sent(&mut decoder)[0].1[9], 3);
    decoder.finish(0);
    assert_eq!(decoder.remarks(), ["repeated images, identical to those that are recorded: 1"]);
    assert_eq!(rejected(&mut decoder), "");
}

#[test]
fn images_without_a_number_are_numbered_one_by_one() {
    let begin = [PLAIN.greeting(), PLAIN.validated(), PLAIN.channel(2)].concat();
    let kind = PLAIN.out().u32(2).raw(&[0x08, 0xFF]).structure("epics:nt/NTNDArray:1.0", 2);
    let kind = kind.text("value").raw(&[0x82]).text("dimension").raw(&[0x88]).structure("dimension_t", 1);
    let init = PLAIN.message(13, &kind.text("size").raw(&[0x22]));
    let image = |number| {
        let head = PLAIN.out().u32(2).raw(&[0]).bits(&[1, 2]);
        let out = head.raw(&[0x2D]).size(WIDTH * HEIGHT).raw(&payload(number));
        let out = out.size(2).raw(&[1]).u32(WIDTH as u32).raw(&[1]).u32(HEIGHT as u32);
        PLAIN.message(13, &out.bits(&[]))
    };
    // The first one was there before.
    let images = [1, 2, 3, 3, 4].map(image).concat();
    let found = feed(&mut decoder(), &[begin, init, images].concat(), 999);
    let expected =
        (0..).zip([2, 3, 3, 4]).map(|(sequence, of)| Found::Event(sequence, 42, None, payload(of)));
    assert_eq!(found[1..], expected.collect::<Vec<_>>());
}

#[test]
fn a_lost_connection_rejects_only_what_arrived_in_part() {
    let begin = [PLAIN.session(2), PLAIN.old(2, 6), PLAIN.image(2, 7)].concat();
    let rest = [PLAIN.image(2, 8), PLAIN.image(2, 9), PLAIN.image(2, 11)].concat();
    let whole = rest.len();
    let rest = [rest, PLAIN.image(2, 12)].concat();
    for cut in [whole, whole + 1, whole + 8, rest.len() - 1] {
        let mut decoder = decoder();
        feed(&mut decoder, &begin, 999);
        // Arrives at once, and nothing is taken before the connection is lost.
        let Input::Bytes(space) = decoder.input() else { panic!() };
        space[..cut].copy_from_slice(&rest[..cut]);
        decoder.received(cut, 42);
        decoder.disconnected();
        assert_eq!(feed(&mut decoder, &[], 1), [event(1, 8), event(2, 9), event(4, 11)], "{cut}");
        let expected = "1 message incomplete: the connection was lost within a message";
        assert_eq!(rejected(&mut decoder), if cut == whole { "" } else { expected }, "{cut}");
    }
}

#[test]
fn compressed_images_get_the_header_of_their_filter() {
    let compressed = |codec, bytes: &[u8]| {
        let update = Update { value: Some((0, bytes.to_vec())), codec: Some((codec, 6)), ..image(7) };
        feed(&mut decoder(), &[PLAIN.session(2), PLAIN.old(2, 6), PLAIN.update(2, &update)].concat(), 999)
    };
    let with = |found: &[Found]| match found {
        [Found::Streams(streams), Found::Event(.., bytes)] => (streams[0].clone(), bytes.clone()),
        other => panic!("{other:?}"),
    };
    let (info, bytes) = with(&compressed("bslz4", &[9, 8, 7]));
    assert_eq!(info, StreamInfo { compression: Some(Compression::BitshuffleLz4), ..stream() });
    assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 30, 0, 0, 32, 0, 9, 8, 7]);
    let (info, bytes) = with(&compressed("lz4", &[9, 8, 7]));
    assert_eq!(info, StreamInfo { compression: Some(Compression::Lz4), ..stream() });
    assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 30, 0, 0, 0, 30, 0, 0, 0, 3, 9, 8, 7]);
    let (info, bytes) = with(&compressed("lz4hdf5", &[9, 8, 7]));
    assert_eq!((info.compression, bytes), (Some(Compression::Lz4), vec![9, 8, 7]));
    let (info, bytes) = with(&compressed("jpeg", &[9, 8, 7]));
    let opaque = StreamInfo { element: ElementType::U8, shape: Vec::new(), ..stream() };
    assert_eq!((info, bytes), (opaque, vec![9, 8, 7]));
    // The filter would take a block of this size for an uncompressed one.
    let mut decoder = decoder();
    let update = Update { value: Some((0, vec![1; 30])), codec: Some(("lz4", 6)), ..image(7) };
    let bytes = [PLAIN.session(2), PLAIN.old(2, 6), PLAIN.update(2, &update)].concat();
    assert_eq!(feed(&mut decoder, &bytes, 999), []);
    let expected = "1 image unsupported: image 7 cannot be read by HDF5's LZ4 filter";
    assert_eq!(rejected(&mut decoder), expected);
}

#[test]
fn lengths_are_checked_before_anything_is_allocated() {
    let head = |flags: u8, length: u32| PLAIN.out().raw(&[0xCA, 2, 0x40 | flags, 13]).u32(length).bytes;
    let found = feed(&mut decoder(), &head(0, u32::MAX), 999);
    assert!(error(&found).contains("4294967295 bytes, more than 1048576"), "{found:?}");
    // Segments count together.
    let first = [head(0x10, 600_000), vec![0; 600_000]].concat();
    let mut decoder = decoder();
    let found = feed(&mut decoder, &[first, head(0x20, 600_000)].concat(), 100_000);
    assert!(error(&found).contains("1200000 bytes, more than 1048576"), "{found:?}");
    let found = feed(&mut self::decoder(), &head(0x30, 1), 999);
    assert!(error(&found).contains("out of turn"), "{found:?}");
}
