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
        assert!(batch.put(data, (SENDERS[*sender].parse().unwrap(), None), 2000));
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

/// What is rejected, as reason, count, and whether the sender is foreign.
fn rejected(decoder: &mut Packets) -> Vec<(RejectReason, u64, bool)> {
    decoder.rejected().iter().map(|row| (row.reason, row.count, row.is_foreign)).collect()
}

/// The end of a decoder: what it hands out then.
fn finish(decoder: &mut Packets) -> Vec<String> {
    decoder.finish(0);
    items(decoder)
}

#[test]
fn every_sender_is_a_stream() {
    let mut decoder = decoder(counted());
    let found = receive(
        &mut decoder,
        &[(0, packet(0, 7)), (1, packet(1, 50)), (0, packet(0, 8)), (1, packet(1, 51))],
    );
    let second = "10.0.0.1:4001 [fd00::2]:4001";
    assert_eq!(found, ["10.0.0.1:4001", "0 0 of 0", "0 1 of 0", second, "1 0 of 1", "1 1 of 1"]);
    let metadata = [("10.0.0.1:4001/first_counter", "7"), ("[fd00::2]:4001/first_counter", "50")];
    let expected = metadata.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(decoder.metadata(), &BTreeMap::from(expected));
    assert!(finish(&mut decoder).is_empty() && decoder.remarks().is_empty());
    assert_eq!(rejected(&mut decoder), []);
}

#[test]
fn a_stream_starts_with_the_lower_of_its_first_two_numbers() {
    let mut decoder = decoder(counted());
    let found = receive(&mut decoder, &[(0, packet(1, 8)), (0, packet(2, 7)), (0, packet(3, 9))]);
    assert_eq!(found, ["10.0.0.1:4001", "0 0 of 2", "0 1 of 1", "0 2 of 3"]);
}

#[test]
fn a_single_packet_is_recorded_if_it_is_the_only_one_or_like_the_others() {
    let mut first = decoder(counted());
    assert_eq!(receive(&mut first, &[(0, packet(0, 7))]), [""; 0]);
    assert_eq!(finish(&mut first), ["10.0.0.1:4001", "0 0 of 0"]);
    let mut second = decoder(counted());
    let packets = [(0, packet(0, 7)), (0, packet(0, 8)), (1, packet(1, 50))];
    assert_eq!(receive(&mut second, &packets).len(), 3);
    assert_eq!(finish(&mut second), ["10.0.0.1:4001 [fd00::2]:4001", "1 0 of 1"]);
    // Of another length: it is foreign.
    let mut third = decoder(counted());
    let packets = [(0, packet(0, 7)), (0, packet(0, 8)), (1, vec![0; 40])];
    assert_eq!(receive(&mut third, &packets).len(), 3);
    assert_eq!(finish(&mut third), [""; 0]);
    assert_eq!(rejected(&mut third), [(RejectReason::NotAdmitted, 1, true)]);
}

#[test]
fn stray_senders_take_no_places() {
    let mut decoder = decoder(Options { streams: 2, ..counted() });
    for port in 1..3000u16 {
        let Input::Datagrams(batch) = decoder.input() else { panic!("it receives packets") };
        batch.clear();
        let stray = ([10, 9, 9, 9], port).into();
        assert!(batch.put(&[0; 40], (stray, None), 2000));
        // The detector sends one packet for every 500 of others.
        let is_due = port % 500 == 0;
        let sender = SENDERS[0].parse().unwrap();
        assert!(!is_due || batch.put(&packet(0, u64::from(port / 500)), (sender, None), 2000));
        decoder.received(1 + usize::from(is_due), 0);
        while decoder.item().unwrap().is_some() {
            decoder.take();
        }
    }
    decoder.finish(0);
    assert_eq!(items(&mut decoder), [""; 0]);
    assert_eq!((decoder.streams.len(), decoder.streams[0].order.sequence()), (1, 5));
    let rows = decoder.rejected();
    let strays: Vec<_> = rows.iter().map(|row| (row.sender.as_deref(), row.count, row.is_foreign)).collect();
    assert_eq!(strays, [(Some("10.9.9.9"), 2999, true)], "ports are not listed one by one");
}

#[test]
fn a_source_may_name_its_senders() {
    let from = vec!["10.0.0.0/24".parse().unwrap()];
    let mut decoder = decoder(Options { from, ..counted() });
    let packets = [(0, packet(0, 7)), (1, packet(1, 50)), (1, packet(1, 51)), (0, vec![1])];
    let found = receive(&mut decoder, &packets);
    assert_eq!(found, ["10.0.0.1:4001", "0 0 of 0"], "at once, and nobody else");
    let expected = [(RejectReason::Malformed, 1, false), (RejectReason::NotAdmitted, 2, true)];
    assert_eq!(rejected(&mut decoder), expected);
}

#[test]
fn destinations_of_a_sender_are_streams_of_their_own() {
    let mut decoder = decoder(counted());
    let to = [(4001, 7), (4002, 7), (4001, 8), (4002, 8)];
    let Input::Datagrams(batch) = decoder.input() else { panic!("it receives packets") };
    for (port, number) in to {
        let destination = Some(([10, 0, 0, 9], port).into());
        assert!(batch.put(&packet(0, number), (SENDERS[0].parse().unwrap(), destination), 2000));
    }
    decoder.received(to.len(), 0);
    let both = "10.0.0.1:4001 10.0.0.1:4001-to-10.0.0.9:4002";
    assert_eq!(items(&mut decoder), ["10.0.0.1:4001", "0 0 of 0", "0 1 of 0", both, "1 0 of 0", "1 1 of 0"]);
}

#[test]
fn what_waits_is_handed_out_at_the_end() {
    let mut decoder = decoder(counted());
    let found = receive(&mut decoder, &[(0, packet(0, 0)), (0, packet(0, 3)), (0, packet(0, 3))]);
    assert_eq!(found, ["10.0.0.1:4001", "0 0 of 0"]);
    assert_eq!(receive(&mut decoder, &[(0, vec![1, 2])]), [""; 0]);
    assert_eq!(finish(&mut decoder), ["0 3 of 0 behind a sequence gap"]);
    let rows = decoder.rejected();
    assert_eq!((rows.len(), rows[0].reason, rows[0].is_foreign), (1, RejectReason::Malformed, false));
    assert!(rows[0].detail.contains("2 bytes"), "{rows:?}");
    assert_eq!(decoder.remarks(), ["1 duplicate packet"]);
    assert!(decoder.remarks().is_empty() && decoder.rejected().is_empty(), "each is returned once");
}

#[test]
fn malformed_packets_of_a_sender_that_is_admitted_later_are_its_own() {
    let mut decoder = decoder(counted());
    let packets = [(0, vec![1]), (1, vec![2]), (0, packet(0, 7)), (0, packet(0, 8))];
    assert_eq!(receive(&mut decoder, &packets).len(), 3);
    assert_eq!(rejected(&mut decoder), [(RejectReason::Malformed, 1, false)]);
    // A sender that is not admitted within a second is foreign.
    decoder.tick(5_000_000_000);
    assert!(!decoder.has_due() && rejected(&mut decoder).is_empty());
    decoder.tick(6_000_000_000);
    assert!(decoder.has_due());
    assert_eq!(rejected(&mut decoder), [(RejectReason::Malformed, 1, true)]);
    assert_eq!(receive(&mut decoder, &[(1, vec![3])]), [""; 0]);
    assert!(rejected(&mut decoder).is_empty());
    assert_eq!(finish(&mut decoder), [""; 0]);
    assert_eq!(rejected(&mut decoder), [(RejectReason::Malformed, 1, true)]);
}

#[test]
fn undecided_senders_are_bounded() {
    let mut decoder = decoder(counted());
    for port in 1..=100u16 {
        let Input::Datagrams(batch) = decoder.input() else { panic!("it receives packets") };
        batch.clear();
        assert!(batch.put(&[1], (([10, 9, 9, 9], port).into(), None), 2000));
        decoder.received(1, 0);
        assert!(items(&mut decoder).is_empty());
    }
    assert_eq!(rejected(&mut decoder), [(RejectReason::Malformed, 36, true)]);
    finish(&mut decoder);
    assert_eq!(rejected(&mut decoder), [(RejectReason::Malformed, 64, true)]);
}

#[test]
fn packets_from_before_the_start_are_no_part_of_it() {
    let mut decoder = Packets::new(counted(), LIMITS, 3000);
    assert_eq!(receive(&mut decoder, &[(0, packet(0, 0))]), [""; 0]);
    assert_eq!(finish(&mut decoder), [""; 0]);
    assert_eq!(decoder.remarks(), ["1 packet not recorded: arrived before the start of the recording"]);
}

#[test]
fn packets_that_cannot_be_events_are_rejected() {
    let mut decoder = decoder(counted());
    let found = receive(&mut decoder, &[(0, Vec::new()), (0, vec![0; 101]), (0, packet(0, 0))]);
    assert_eq!(found, [""; 0]);
    assert_eq!(finish(&mut decoder), ["10.0.0.1:4001", "0 0 of 0"]);
    let expected = [(RejectReason::Malformed, 1, false), (RejectReason::Unsupported, 1, false)];
    assert_eq!(rejected(&mut decoder), expected);
}

/// A VDIF frame of 40 bytes without a sample rate.
fn frame(thread: u32, second: u32, in_second: u32) -> Vec<u8> {
    let words = [second, 40 << 24 | in_second, 1 << 29 | 5, thread << 16];
    let mut frame: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    frame.resize(40, thread as u8);
    frame
}

fn vdif(frames_per_second: Option<u64>) -> Options {
    Options::new(Format::Vdif(Vdif { frames_per_second }))
}

/// Sequence numbers of the events of each stream, and causes of losses.
fn sequences(decoder: &mut Packets, frames: &[Vec<u8>]) -> BTreeMap<usize, Vec<(u64, bool)>> {
    let mut found = BTreeMap::<usize, Vec<(u64, bool)>>::new();
    let mut take = |decoder: &mut Packets| {
        while let Some(item) = decoder.item().unwrap() {
            let mut crc = None;
            if let Item::Event(event) = item {
                let missing = event.missing.is_some();
                found.entry(event.stream).or_default().push((event.sequence, missing));
                crc = Some(crc32(event.payload));
            }
            crc.into_iter().for_each(|crc| decoder.completed(crc));
            decoder.take();
        }
    };
    for frames in frames.chunks(MESSAGES) {
        let Input::Datagrams(batch) = decoder.input() else { panic!("it receives packets") };
        batch.clear();
        frames.iter().for_each(|frame| assert!(batch.put(frame, (SENDERS[0].parse().unwrap(), None), 2000)));
        decoder.received(frames.len(), 0);
        take(decoder);
    }
    decoder.finish(0);
    take(decoder);
    found
}

#[test]
fn streams_are_limited_by_a_setting() {
    for (streams, most) in [(256, 40), (32, 32)] {
        let mut decoder = decoder(Options { streams, ..vdif(Some(10)) });
        let frames: Vec<_> = (0..4).flat_map(|at| (0..40).map(move |thread| frame(thread, 5, at))).collect();
        let found = sequences(&mut decoder, &frames);
        assert_eq!(found.len(), most);
        let all: Vec<_> = (0..4).map(|sequence| (sequence, false)).collect();
        assert!(found.values().all(|sequences| *sequences == all), "{found:?}");
        assert_eq!(decoder.infos[3].name, "0-thread-3");
        let surplus = (most == 32).then_some((RejectReason::NotAdmitted, 4 * 8, false));
        assert_eq!(rejected(&mut decoder), surplus.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn junk_headers_take_no_streams() {
    for from in [Vec::new(), vec!["10.0.0.1".parse().unwrap()]] {
        let mut decoder = decoder(Options { from, streams: 4, ..vdif(Some(20)) });
        let mut random = 1u32;
        // In place of lost frames: marked as invalid, with old memory as header.
        let junk = (0..300).map(|_| {
            let mut word = || {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                random
            };
            let words = [word() | 1 << 31, word(), 5, word()];
            let mut frame: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
            frame.resize(40, 0);
            frame
        });
        let frames: Vec<_> = (0..20)
            .map(|at| frame(0, 5, at))
            .chain(junk)
            .chain((0..20).flat_map(|at| [frame(1, 6, at), frame(0, 6, at)]))
            // A thread of one frame, at the end.
            .chain([frame(2, 6, 0)])
            .collect();
        let found = sequences(&mut decoder, &frames);
        let lengths: Vec<_> = found.values().map(Vec::len).collect();
        assert_eq!(lengths, [40, 20, 1], "{:?}", decoder.infos);
        assert_eq!(rejected(&mut decoder), [(RejectReason::NotAdmitted, 300, false)]);
    }
}

#[test]
fn a_thread_may_start_with_invalid_frames() {
    let mut decoder = decoder(vdif(Some(20)));
    let frames: Vec<_> = (0..20)
        .map(|at| {
            let mut frame = frame(0, 5, at);
            frame[3] |= if at < 15 { 0x80 } else { 0 };
            frame
        })
        .collect();
    assert_eq!(sequences(&mut decoder, &frames)[&0].len(), 20);
    assert_eq!(rejected(&mut decoder), []);
}

#[test]
fn a_clock_that_is_set_is_no_loss() {
    for (per_second, given) in [(10, None), (10, Some(10)), (1000, None)] {
        // From January 2020 to another time, within a day and beyond.
        for (step_s, is_set) in [(80_000, false), (90_000, true), (800_000_000, true)] {
            let before = (0..10).map(|at| frame(0, 5, at));
            let after = (0..2 * per_second).map(|at| frame(0, 5 + step_s + at / per_second, at % per_second));
            let frames: Vec<_> = before.chain(after).collect();
            let mut decoder = decoder(vdif(given));
            let found = sequences(&mut decoder, &frames);
            assert_eq!(found[&0].len(), frames.len());
            let last = found[&0].last().unwrap().0;
            assert_eq!(last < frames.len() as u64 + 1000, is_set, "{per_second} {step_s}: {last}");
            assert_eq!(rejected(&mut decoder), []);
        }
    }
}

#[test]
fn the_stream_shows_its_frames_per_second() {
    for per_second in [1, 2, 20, 100, 1000] {
        for threads in [1, 17] {
            // It starts within a second.
            let start = per_second / 3;
            let frames: Vec<_> = (start..3 * per_second + start)
                .flat_map(|at| {
                    (0..threads).map(move |thread| frame(thread, 5 + at / per_second, at % per_second))
                })
                .collect();
            let mut decoder = decoder(vdif(None));
            let found = sequences(&mut decoder, &frames);
            assert_eq!(found.len(), threads as usize);
            let all: Vec<_> = (0..u64::from(3 * per_second)).map(|at| (at, false)).collect();
            assert!(found.values().all(|sequences| *sequences == all), "{per_second}: {found:?}");
            assert_eq!((rejected(&mut decoder), decoder.remarks()), (Vec::new(), Vec::new()));
        }
    }
}

#[test]
fn frames_that_change_places_around_a_second_lose_nothing() {
    // Few enough that all later seconds wait for the rate until the end; and more.
    for per_second in [1, 3, 20, 64, 200] {
        let mut numbers: Vec<u32> = (0..3 * per_second).collect();
        (1..numbers.len().saturating_sub(3)).step_by(4).for_each(|at| numbers.swap(at, at + 3));
        let frames: Vec<_> =
            numbers.iter().map(|at| frame(0, 5 + at / per_second, at % per_second)).collect();
        let mut decoder = decoder(vdif(None));
        let all: Vec<_> = (0..u64::from(3 * per_second)).map(|at| (at, false)).collect();
        assert_eq!(sequences(&mut decoder, &frames)[&0], all, "{per_second}");
        assert_eq!(rejected(&mut decoder), []);
    }
}

#[test]
fn frames_lost_across_a_second_are_counted_once_the_rate_is_known() {
    // 100 frames per second; the last two of second 0 and one of second 2 are lost.
    let lost = [98, 99, 250];
    let numbers = (0..400u32).filter(|at| !lost.contains(at));
    let frames: Vec<_> = numbers.map(|at| frame(0, 5 + at / 100, at % 100)).collect();
    let mut decoder = decoder(vdif(None));
    let found = sequences(&mut decoder, &frames);
    let sequences = &found[&0];
    assert_eq!((sequences.len(), sequences.last().unwrap().0), (397, 399), "{sequences:?}");
    assert_eq!(rejected(&mut decoder), []);
}

#[test]
fn the_stream_has_precedence_over_a_stated_rate() {
    let frames: Vec<_> = (0..60).map(|at| frame(0, 5 + at / 20, at % 20)).collect();
    let mut decoder = decoder(vdif(Some(10)));
    assert_eq!(sequences(&mut decoder, &frames)[&0].len(), 60);
    assert_eq!(rejected(&mut decoder), []);
    assert_eq!(decoder.remarks(), ["0-thread-0: 20 frames per second in the stream, 10 stated"]);
}

#[test]
fn a_counter_that_restarts_loses_nothing() {
    // Acquisitions of the same packets, of every length, and one more packet in the last.
    for length in [2, 3, 10, 100, 255, 256, 257, 700] {
        let mut decoder = decoder(counted());
        let acquisitions = (0..10).flat_map(|_| 0..length).chain([length]);
        let packets: Vec<_> = acquisitions.map(|number| packet(7, number)).collect();
        let found = sequences(&mut decoder, &packets);
        let all: Vec<_> = (0..10 * length + 1).map(|sequence| (sequence, false)).collect();
        assert_eq!(found[&0], all, "{length}");
        assert_eq!(decoder.remarks(), ["counter restarts: 9; losses at a restart are unknown"]);
        assert_eq!(rejected(&mut decoder), []);
    }
}

#[test]
fn a_counter_of_half_a_byte_shows_losses_across_its_wrap() {
    let options = Options::new(Format::Counter(Counter::parse("u4@1").unwrap()));
    let packet = |number: u32| [&[0x18, 0xE0 | (number & 15) as u8][..], &number.to_be_bytes()].concat();
    for lost in 1..7 {
        let mut decoder = decoder(options.clone());
        // One more packet changes places with the next one.
        let mut numbers: Vec<u32> = (0..400).filter(|number| !(108..108 + lost).contains(number)).collect();
        numbers.swap(300, 301);
        let packets: Vec<_> = numbers.iter().map(|number| packet(*number)).collect();
        let found = sequences(&mut decoder, &packets);
        assert_eq!(found[&0].len() as u32 + lost, 400);
        assert_eq!(found[&0].last().unwrap().0, 399, "{lost}");
        assert_eq!((rejected(&mut decoder), decoder.remarks()), (Vec::new(), Vec::new()), "{lost}");
    }
}

#[test]
fn what_the_kernel_dropped_at_the_end_is_lost() {
    let mut decoder = decoder(counted());
    assert_eq!(receive(&mut decoder, &[(0, packet(0, 0)), (0, packet(0, 1))]).len(), 3);
    decoder.finish(3);
    let expected = Item::Lost { stream: 0, sequence: 4, cause: LossCause::SocketBuffer };
    assert_eq!(decoder.item().unwrap(), Some(expected));
    decoder.take();
    assert_eq!(decoder.item().unwrap(), None);
}

/// Events of a decoder, each as the first bytes of its packets.
fn events(decoder: &mut Packets, packets: &[Vec<u8>]) -> Vec<(u64, Option<LossCause>, Vec<u8>)> {
    let mut found = Vec::new();
    for packets in packets.chunks(MESSAGES) {
        let Input::Datagrams(batch) = decoder.input() else { panic!("it receives packets") };
        batch.clear();
        let sender = SENDERS[0].parse().unwrap();
        packets.iter().for_each(|data| assert!(batch.put(data, (sender, None), 2000)));
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
    assert_eq!(rejected(&mut decoder), [(RejectReason::Incomplete, 2, false)]);
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
    let rows = second.rejected();
    assert!(rows[0].detail.contains("packet 3 of a frame of 3 packets"), "{rows:?}");
    assert_eq!((rows[1].reason, rows[1].count), (RejectReason::Incomplete, 3));
}

#[test]
fn packets_with_the_same_frame_number_are_an_event() {
    let frame = Counter::parse("u8@8").unwrap_or(Counter { offset: 8, bytes: 1, ..Counter::default() });
    let mut decoder = decoder(Options { frame: Some(frame), skip: 15, ..counted() });
    let frames = [9, 9, 10, 10, 10, 11, 12];
    let packets: Vec<_> = (0..).zip(frames).map(|(number, frame)| packet(frame, number)).collect();
    assert_eq!(events(&mut decoder, &packets), [(0, None, vec![10, 10, 10]), (1, None, vec![11])]);
}
