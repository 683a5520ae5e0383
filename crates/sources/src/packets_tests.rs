//! Packets of several senders, in and out of order.
use super::*;

const LIMITS: Limits = Limits { message_bytes_max: 0, event_bytes_max: 100 };
const SENDERS: [&str; 2] = ["10.0.0.1:4001", "[fd00::2]:4001"];

/// Packets of 16 bytes: their number, then their sender and filling.
fn packet(sender: usize, number: u64) -> Vec<u8> {
    [number.to_be_bytes(), [sender as u8; 8]].concat()
}

fn decoder(options: Options) -> Packets {
    Packets::new(options, LIMITS, 1000)
}

fn counted() -> Options {
    Options::new(Format::Counter(Counter::default()))
}

/// Gives the decoder packets of one batch; returns what it hands out.
fn receive(decoder: &mut Packets, packets: &[(usize, Vec<u8>)]) -> Vec<String> {
    let Input::Datagrams(batch) = decoder.input() else { panic!("it receives packets") };
    batch.clear();
    for (sender, data) in packets {
        assert!(batch.put(data, SENDERS[*sender].parse().unwrap(), 2000));
    }
    decoder.received(packets.len(), 0);
    items(decoder)
}

fn items(decoder: &mut Packets) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(item) = decoder.item().unwrap() {
        found.push(match item {
            Item::Streams(streams) => {
                let names: Vec<&str> = streams.iter().map(|info| info.name.as_str()).collect();
                names.join(" ")
            }
            Item::Event(event) => {
                assert_eq!(event.timestamp_ns, 2000);
                let missing = event.missing.map_or(String::new(), |cause| format!(" behind a {cause}"));
                format!("{} {} of {}{missing}", event.stream, event.sequence, event.payload[8])
            }
            Item::End { .. } => "end".to_owned(),
            other => format!("{other:?}"),
        });
        decoder.take();
    }
    found
}

#[test]
fn every_sender_is_a_stream() {
    let mut decoder = decoder(counted());
    let found = receive(&mut decoder, &[(0, packet(0, 7)), (1, packet(1, 50)), (0, packet(0, 8))]);
    assert_eq!(found, ["10.0.0.1:4001", "0 0 of 0", "10.0.0.1:4001 [fd00::2]:4001", "1 0 of 1", "0 1 of 0"]);
    let metadata = [("10.0.0.1:4001/first_counter", "7"), ("[fd00::2]:4001/first_counter", "50")];
    let expected = metadata.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(decoder.metadata(), &BTreeMap::from(expected));
    assert!(decoder.remarks().is_empty());
}

#[test]
fn what_waits_is_handed_out_at_the_end() {
    let mut decoder = decoder(counted());
    let found = receive(&mut decoder, &[(0, packet(0, 0)), (0, packet(0, 3)), (0, packet(0, 3))]);
    assert_eq!(found, ["10.0.0.1:4001", "0 0 of 0"]);
    assert_eq!(receive(&mut decoder, &[(0, vec![1, 2])]), [""; 0]);
    decoder.finish(0);
    assert_eq!(items(&mut decoder), ["0 3 of 0 behind a sequence gap"]);
    let remarks = decoder.remarks();
    assert!(remarks[0].contains("1 packet not recorded: unexpected format (first: 2 bytes"), "{remarks:?}");
    assert_eq!(remarks[1], "1 packet not recorded: duplicate or too late");
    assert!(decoder.remarks().is_empty(), "each is returned once");
}

#[test]
fn packets_from_before_the_start_are_no_part_of_it() {
    let mut decoder = Packets::new(counted(), LIMITS, 3000);
    assert_eq!(receive(&mut decoder, &[(0, packet(0, 0))]), [""; 0]);
    decoder.finish(0);
    assert_eq!(decoder.remarks(), ["1 packet not recorded: arrived before the start of the recording"]);
}

#[test]
fn packets_that_cannot_be_events_are_counted() {
    let mut decoder = decoder(counted());
    let found = receive(&mut decoder, &[(0, Vec::new()), (0, vec![0; 101]), (0, packet(0, 0))]);
    assert_eq!(found, ["10.0.0.1:4001", "0 0 of 0"]);
    decoder.finish(0);
    let remarks = decoder.remarks();
    assert_eq!(remarks, ["2 packets not recorded: unexpected format (first: 0 bytes)"]);
}

#[test]
fn streams_are_limited() {
    let mut decoder = decoder(Options::new(Format::Vdif(Vdif { frames_per_second: Some(10) })));
    for thread in 0..20u32 {
        let words = [5, 0, 1 << 29 | 5, thread << 16];
        let mut frame: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        frame.resize(40, 0);
        let Input::Datagrams(batch) = decoder.input() else { panic!("it receives packets") };
        batch.clear();
        assert!(batch.put(&frame, SENDERS[0].parse().unwrap(), 2000));
        decoder.received(1, 0);
        while decoder.item().unwrap().is_some() {
            decoder.take();
        }
    }
    assert_eq!(decoder.infos.len(), STREAMS_MAX);
    assert_eq!(decoder.infos[3].name, "0-thread-3");
    decoder.finish(3);
    let expected = [
        "4 packets not recorded: more than 16 streams",
        "3 packets dropped by the kernel after the last received packet: socket buffer full",
    ];
    assert_eq!(decoder.remarks(), expected);
}

/// Events of a decoder, each as the first bytes of its packets.
fn events(decoder: &mut Packets, packets: &[Vec<u8>]) -> Vec<(u64, Option<LossCause>, Vec<u8>)> {
    let mut found = Vec::new();
    for packets in packets.chunks(MESSAGES) {
        let Input::Datagrams(batch) = decoder.input() else { panic!("it receives packets") };
        batch.clear();
        packets.iter().for_each(|data| assert!(batch.put(data, SENDERS[0].parse().unwrap(), 2000)));
        decoder.received(packets.len(), 0);
        while let Some(item) = decoder.item().unwrap() {
            if let Item::Event(event) = item {
                found.push((event.sequence, event.missing, event.payload.to_vec()));
            }
            decoder.take();
        }
    }
    found
}

#[test]
fn consecutive_packets_are_an_event() {
    let mut decoder = decoder(Options { group: Some(2), skip: 15, ..counted() });
    // Out of order, and one is lost.
    let packets = [3, 5, 4, 6, 7, 9, 10, 11].map(|number| packet(number as usize, number));
    assert_eq!(events(&mut decoder, &packets), [(0, None, vec![4, 5]), (1, None, vec![6, 7])]);
    decoder.finish(0);
    let item = decoder.item().unwrap().unwrap();
    let Item::Event(event) = item else { panic!("{item:?}") };
    assert_eq!(
        (event.sequence, event.missing, event.payload),
        (3, Some(LossCause::SequenceGap), &[10, 11][..])
    );
    decoder.take();
    assert!(decoder.item().unwrap().is_none());
    assert_eq!(decoder.remarks(), ["2 packets not recorded: event incomplete"]);
}

#[test]
fn packets_that_are_numbered_in_their_frame_are_an_event() {
    // The frame is a byte, which wraps around; packets of a frame count from 0.
    let frame = Counter::parse("u16be@0").unwrap();
    let counter = Counter::parse("u16be@2").unwrap();
    let options = Options { group: Some(3), frame: Some(frame), ..Options::new(Format::Counter(counter)) };
    let packet = |frame: u16, index: u16| [frame.to_be_bytes(), index.to_be_bytes()].concat();
    let frames: Vec<_> = [65_534, 65_535, 0, 1].iter().flat_map(|f| (0..3).map(|i| packet(*f, i))).collect();
    let mut first = decoder(options.clone());
    let found = events(&mut first, &frames);
    let expected: Vec<_> =
        (0..).zip(frames.chunks(3)).map(|(at, packets)| (at, None, packets.concat())).collect();
    assert_eq!(found, expected);
    assert_eq!(first.metadata()[&format!("{}/first_frame", SENDERS[0])], "65534");
    // The last packet of frame 1 is lost, and an index is out of range.
    let mut second = decoder(Options { window: 1, ..options });
    let lost =
        [packet(1, 0), packet(1, 1), packet(1, 3), packet(2, 0), packet(2, 1), packet(2, 2), packet(3, 0)];
    let found = events(&mut second, &lost);
    assert_eq!(found, [(1, Some(LossCause::SequenceGap), lost[3..6].concat())]);
    second.finish(0);
    assert!(second.item().unwrap().is_none());
    let remarks = second.remarks();
    assert!(remarks[0].contains("packet 3 of a frame of 3 packets"), "{remarks:?}");
    assert_eq!(remarks[1], "3 packets not recorded: event incomplete");
}

#[test]
fn packets_with_the_same_frame_number_are_an_event() {
    let frame = Counter::parse("u8@8").unwrap_or(Counter { offset: 8, bytes: 1, ..Counter::default() });
    let mut decoder = decoder(Options { frame: Some(frame), skip: 15, ..counted() });
    let frames = [9, 9, 10, 10, 10, 11, 12];
    let packets: Vec<_> = (0..).zip(frames).map(|(number, frame)| packet(frame, number)).collect();
    assert_eq!(events(&mut decoder, &packets), [(0, None, vec![10, 10, 10]), (1, None, vec![11])]);
}
