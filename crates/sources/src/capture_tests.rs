//! Capture files of every kind, whole and damaged.
use proptest::prelude::*;

use super::*;

/// A UDP packet from 10.1.2.3:7000 to port 4001.
fn ipv4(payload: &[u8], fragment: u16) -> Vec<u8> {
    let total = (28 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 1]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, 17, 0, 0, 10, 1, 2, 3, 10, 1, 2, 4]);
    packet.extend(udp(payload));
    packet
}

fn ipv6(payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((8 + payload.len() as u16).to_be_bytes());
    packet.extend([17, 64]);
    packet.extend([0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend([0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
    packet.extend(udp(payload));
    packet
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    for number in [7000, 4001, 8 + payload.len() as u16, 0] {
        packet.extend(number.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

fn ethernet(tags: &[u8], ether_type: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(tags);
    frame.extend(ether_type.to_be_bytes());
    frame.extend(packet);
    // Short frames are padded.
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Numbers of a file in one byte order.
#[derive(Clone, Copy)]
struct Order {
    is_big_endian: bool,
}

const LITTLE: Order = Order { is_big_endian: false };
const BIG: Order = Order { is_big_endian: true };

impl Order {
    fn u32(self, number: u32) -> [u8; 4] {
        if self.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn u16(self, number: u16) -> [u8; 2] {
        if self.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    /// Header of a pcap file.
    fn pcap(self, magic: u32, link: u32) -> Vec<u8> {
        let version = [self.u16(2), self.u16(4)].concat();
        [&self.u32(magic)[..], &version, &[0; 8], &self.u32(262_144), &self.u32(link)].concat()
    }

    /// Record of a pcap file.
    fn record(self, (seconds, fraction): (u32, u32), frame: &[u8], more: u32) -> Vec<u8> {
        let bytes = frame.len() as u32;
        let head = [seconds, fraction, bytes, bytes + more].map(|number| self.u32(number)).concat();
        [&head[..], frame].concat()
    }

    /// Block of a pcapng file.
    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = self.u32(12 + body.len() as u32);
        [&self.u32(kind)[..], &length, &body, &length].concat()
    }

    fn section(self) -> Vec<u8> {
        let body = [&self.u32(0x1A2B_3C4D)[..], &self.u16(1), &self.u16(0), &[0xFF; 8]].concat();
        self.block(0x0A0D_0D0A, &body)
    }

    /// Interface with a time resolution.
    fn interface(self, link: u16, resolution: u8) -> Vec<u8> {
        let option = [&self.u16(9)[..], &self.u16(1), &[resolution, 0, 0, 0], &[0; 4]].concat();
        self.block(1, &[&self.u16(link)[..], &[0; 2], &self.u32(0), &option].concat())
    }

    /// Obsolete block with a packet.
    fn packet(self, drops: u16, time: u64, frame: &[u8], more: u32) -> Vec<u8> {
        let bytes = frame.len() as u32 + more;
        let head = [(time >> 32) as u32, time as u32, bytes, bytes].map(|number| self.u32(number));
        self.block(2, &[&self.u16(0)[..], &self.u16(drops), &head.concat(), frame].concat())
    }

    /// Option of 8 bytes.
    fn option(self, code: u16, number: u64) -> Vec<u8> {
        let bytes = if self.is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
        [&self.u16(code)[..], &self.u16(8), &bytes].concat()
    }

    fn enhanced(self, interface: u32, time: u64, frame: &[u8]) -> Vec<u8> {
        let bytes = frame.len() as u32;
        let head = [interface, (time >> 32) as u32, time as u32, bytes, bytes].map(|number| self.u32(number));
        self.block(6, &[&head.concat()[..], frame].concat())
    }
}

/// Packets of a file as text, then its remarks and its error.
fn read(file: Vec<u8>, port: Option<u16>) -> Vec<String> {
    let mut capture = match Capture::open(std::io::Cursor::new(file), port) {
        Ok(capture) => capture,
        Err(error) => return vec![error.to_string()],
    };
    let (mut chunk, mut found) = (Chunk::default(), Vec::new());
    loop {
        let more = capture.read(&mut chunk, u64::MAX);
        let packets = (0..).map_while(|index| chunk.packet(index));
        found.extend(
            packets
                .map(|packet| format!("{} at {}: {:?}", packet.sender, packet.captured_ns, packet.payload)),
        );
        match more {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                found.push(error.to_string());
                break;
            }
        }
    }
    found.extend(capture.remarks());
    let rejected = capture.rejected();
    found.extend(rejected.iter().map(|row| format!("{}: {} {}", row.detail, row.count, row.reason.name())));
    found
}

const SENT: &str = "10.1.2.3:7000 at 5000000007000: [1, 2, 3]";

#[test]
fn both_byte_orders_and_resolutions() {
    for order in [LITTLE, BIG] {
        let frame = ethernet(&[], 0x0800, &ipv4(&[1, 2, 3], 0x4000));
        for (magic, fraction) in [(0xA1B2_C3D4, 7), (0xA1B2_3C4D, 7000)] {
            let file = [order.pcap(magic, 1), order.record((5000, fraction), &frame, 0)].concat();
            assert_eq!(read(file, Some(4001)), [SENT]);
        }
    }
}

#[test]
fn every_link_layer() {
    let v4 = ipv4(&[1, 2, 3], 0);
    let cooked = |before: usize, after: usize| [&vec![0; before][..], &[8, 0], &vec![0; after], &v4].concat();
    let vlan = [0x81, 0, 0, 9];
    let frames = [
        (1, ethernet(&vlan, 0x0800, &v4)),
        (1, ethernet(&[&[0x88, 0xA8, 0, 5], &vlan[..]].concat(), 0x0800, &v4)),
        (101, v4.clone()),
        (228, v4.clone()),
        (113, cooked(14, 0)),
        (276, cooked(0, 18)),
        (0, [&[2, 0, 0, 0], &v4[..]].concat()),
        (108, [&[0, 0, 0, 2], &v4[..]].concat()),
        (12, v4.clone()),
        (14, v4.clone()),
    ];
    for (link, frame) in frames {
        let file = [LITTLE.pcap(0xA1B2_C3D4, link), LITTLE.record((5000, 7), &frame, 0)].concat();
        assert_eq!(read(file, None), [SENT], "link type {link}");
    }
    for (link, frame) in [(1, ethernet(&[], 0x86DD, &ipv6(&[9]))), (229, ipv6(&[9]))] {
        let file = [LITTLE.pcap(0xA1B2_C3D4, link), LITTLE.record((1, 0), &frame, 0)].concat();
        assert_eq!(read(file, None), ["[fd00::2]:7000 at 1000000000: [9]"]);
    }
    assert_eq!(
        read(LITTLE.pcap(0xA1B2_C3D4, 147), None),
        ["cannot read capture file: link type 147 is not supported"]
    );
}

#[test]
fn sections_and_interfaces_of_pcapng() {
    let v4 = ipv4(&[1, 2, 3], 0);
    for order in [LITTLE, BIG] {
        let ns = 5_000_000_007_000;
        let file = [
            order.section(),
            order.interface(101, 9),
            order.interface(1, 0x80 | 20),
            order.block(0x0BAD, &[1; 9]),
            order.enhanced(0, ns, &v4),
            order.enhanced(1, 3 << 19, &ethernet(&[], 0x0800, &v4)),
            // Without a time: that of the packet before.
            order.block(3, &[&order.u32(v4.len() as u32)[..], &v4].concat()),
            order.enhanced(7, ns, &v4),
            // Interfaces count from 0 in each section.
            order.section(),
            order.interface(147, 6),
            order.enhanced(0, ns, &v4),
        ];
        let second = SENT.replace("5000000007000", "1500000000");
        let untimed = "1 packet of the file without a valid time: they have the time of the packet before";
        let expected = [SENT, &second, &second, untimed, "unsupported link type: 2 unsupported"];
        assert_eq!(read(file.concat(), None), expected);
    }
}

#[test]
fn obsolete_packet_blocks_are_read() {
    let v4 = ipv4(&[1, 2, 3], 0);
    for order in [LITTLE, BIG] {
        let file = [
            order.section(),
            order.interface(101, 9),
            order.packet(u16::MAX, 5_000_000_007_000, &v4, 0),
            order.packet(3, 5_000_000_007_000, &v4, 0),
            // Its data exceed it.
            order.packet(0, 0, &v4, 4),
            order.block(2, &[0; 12]),
            order.enhanced(0, 5_000_000_007_000, &v4),
        ];
        let dropped = "3 packets dropped between packets of the capture, as the file states";
        let expected = [SENT, SENT, SENT, dropped, "damaged record: 2 malformed"];
        assert_eq!(read(file.concat(), None), expected);
    }
}

#[test]
fn times_are_relative_to_the_offset_of_their_interface() {
    let v4 = ipv4(&[1, 2, 3], 0);
    for order in [LITTLE, BIG] {
        let interface = |offset_s: i64| {
            let head = [&order.u16(101)[..], &[0; 6]].concat();
            order.block(1, &[&head[..], &order.option(14, offset_s.cast_unsigned()), &[0; 4]].concat())
        };
        let file = [
            order.section(),
            interface(4990),
            interface(-10),
            order.enhanced(0, 10_000_007, &v4),
            order.enhanced(1, 5_010_000_007, &v4),
            // Before 1970.
            order.enhanced(1, 7, &v4),
        ];
        let untimed = "1 packet of the file without a valid time: they have the time of the packet before";
        assert_eq!(read(file.concat(), None), [SENT, SENT, SENT, untimed]);
    }
}

#[test]
fn lengths_of_headers_that_contradict_the_record() {
    let record = |packet: &[u8]| LITTLE.record((5000, 7), packet, 0);
    let with = |at: usize, length: u16| {
        let mut packet = ipv4(&[1, 2, 3], 0);
        packet[at..at + 2].copy_from_slice(&length.to_be_bytes());
        packet
    };
    let padded = [with(2, 0), vec![0; 15]].concat();
    let header = LITTLE.pcap(0xA1B2_C3D4, 101);
    // Without the length of the IP packet, that of UDP is enough.
    let file = [header.clone(), record(&with(2, 0)), record(&padded)].concat();
    assert_eq!(read(file, None), [SENT, SENT]);
    let mut neither = with(2, 0);
    neither[24..26].copy_from_slice(&[0, 200]);
    let odd = [with(2, 5), with(2, 200), with(24, 200), with(24, 7), neither];
    let file = odd.iter().fold(header.clone(), |file, packet| [file, record(packet)].concat());
    assert_eq!(read(file.clone(), None), ["contradictory lengths of IP or UDP: 5 malformed"]);
    assert_eq!(read(file, Some(1)), ["5 packets of the file not recorded: sent to another port"]);
    let file = [header, LITTLE.record((5000, 7), &with(24, 200), 160)].concat();
    assert_eq!(read(file, None), ["captured only in part: 1 incomplete"]);
}

#[test]
fn damage_within_a_block_costs_that_block_alone() {
    let v4 = ipv4(&[1, 2, 3], 0);
    for order in [LITTLE, BIG] {
        let whole = order.enhanced(0, 5_000_000_007_000, &v4);
        let captured = |bytes: u32| {
            let mut block = whole.clone();
            block[20..24].copy_from_slice(&order.u32(bytes));
            block
        };
        let head = [order.section(), order.interface(101, 9)].concat();
        // The last one is the last block of the file.
        for bytes in [100, 2 << 20, u32::MAX] {
            let file = [&head[..], &captured(bytes), &whole, &captured(bytes)].concat();
            assert_eq!(read(file, None), [SENT, "damaged record: 2 malformed"], "{bytes}");
        }
        // Blocks shorter than their kind: a packet, statistics.
        let file = [&head[..], &order.block(6, &[0; 8]), &order.block(5, &[]), &whole].concat();
        assert_eq!(read(file, None), [SENT, "damaged record: 1 malformed"]);
        // The lengths at both ends differ.
        let mut torn = captured(100);
        let end = torn.len() - 4;
        torn[end] ^= 0x40;
        let found = read([&head[..], &torn, &whole].concat(), None);
        assert!(found[0].contains(&format!("beyond byte {}: damaged record", head.len())), "{found:?}");
    }
}

#[test]
fn long_blocks_without_packets_are_passed_over() {
    let whole = |order: Order| order.enhanced(0, 5_000_000_007_000, &ipv4(&[1, 2, 3], 0));
    for order in [LITTLE, BIG] {
        let head = [order.section(), order.interface(101, 9)].concat();
        for bytes in [BUFFER_BYTES - 12, BUFFER_BYTES, 20 << 20] {
            let long = order.block(10, &vec![7; bytes]);
            let file = [&head[..], &long, &whole(order), &long, &long, &whole(order)].concat();
            assert_eq!(read(file, None), [SENT, SENT], "{bytes}");
            let refused = format!("cannot read capture file beyond byte {}: damaged", head.len());
            let mut torn = long.clone();
            let end = torn.len() - 4;
            torn[end] ^= 0x40;
            for file in [[&head[..], &torn, &whole(order)].concat(), [&head[..], &long[..end]].concat()] {
                let found = read(file, None);
                // A block that is held whole may also have been cut by the end of the file.
                let is_said = found[0].starts_with(&refused) || found[0].contains("ends within a record");
                assert!(is_said, "{bytes}: {found:?}");
            }
        }
    }
}

#[test]
fn stated_drops_are_reported() {
    for order in [LITTLE, BIG] {
        let statistics = |interface: u32, options: &[Vec<u8>]| {
            let head = [&order.u32(interface)[..], &[0; 8]].concat();
            order.block(5, &[&head[..], &options.concat(), &[0; 4]].concat())
        };
        let v4 = ipv4(&[1, 2, 3], 0);
        let bytes = order.u32(v4.len() as u32);
        let time = 5_000_000_007_000u64;
        let numbers = [order.u32(0), order.u32((time >> 32) as u32), order.u32(time as u32), bytes, bytes];
        let mut packet = [numbers.concat(), v4].concat();
        packet.resize(packet.len().next_multiple_of(4), 0);
        let packet = order.block(6, &[&packet[..], &order.option(4, 9), &[0; 4]].concat());
        let section = [
            order.section(),
            order.interface(101, 9),
            order.interface(101, 9),
            statistics(0, &[order.option(5, 1), order.option(7, 2)]),
            packet,
            // The last statistics are valid.
            statistics(0, &[order.option(5, 20), order.option(7, 100)]),
            statistics(1, &[order.option(7, 5)]),
            statistics(7, &[order.option(7, 5)]),
        ];
        let file = section.concat().repeat(2);
        let expected = [
            "40 packets dropped by the network interface of the capture, as the file states",
            "210 packets dropped by the operating system of the capture, as the file states",
            "18 packets dropped between packets of the capture, as the file states",
        ];
        assert_eq!(read(file, None), [&[SENT, SENT][..], &expected].concat());
    }
}

#[test]
fn packets_that_are_not_handed_out_are_counted() {
    let raw = |packet: &[u8], more| LITTLE.record((5000, 7), packet, more);
    let v4 = ipv4(&[1, 2, 3], 0);
    let mut tcp = v4.clone();
    tcp[9] = 6;
    tcp.resize(60, 0);
    tcp[2..4].copy_from_slice(&60u16.to_be_bytes());
    tcp[32] = 0x50;
    let file = [
        LITTLE.pcap(0xA1B2_C3D4, 101),
        raw(&tcp, 0),
        raw(&ipv4(&[1; 64], 0x2000), 0),
        raw(&ipv4(&[1; 64], 8), 0),
        raw(&v4[..30], 1),
        raw(&v4[..30], 0),
        raw(&[], 0),
        raw(&v4, 0),
    ];
    let mut expected = vec![
        SENT,
        "not UDP over IP: 2 unsupported",
        "IP fragments: 2 unsupported",
        "captured only in part: 1 incomplete",
        "contradictory lengths of IP or UDP: 1 malformed",
    ];
    assert_eq!(read(file.concat(), Some(4001)), expected);
    expected[0] = "3 packets of the file not recorded: sent to another port";
    expected.truncate(3);
    assert_eq!(read(file.concat(), Some(4002)), expected);
}

#[test]
fn files_that_break_off_or_lie() {
    let frame = ipv4(&[1, 2, 3], 0);
    let whole = [LITTLE.pcap(0xA1B2_C3D4, 101), LITTLE.record((5000, 7), &frame, 0)].concat();
    let cut_off = [&whole[..], &LITTLE.record((5000, 7), &frame, 0)[..20]].concat();
    assert_eq!(read(cut_off, None), [SENT, "the file ends within a record: 1 incomplete"]);
    let long =
        [whole.clone(), [1, 2, u32::MAX - 5, u32::MAX].map(|n| LITTLE.u32(n)).concat(), vec![0; 2 << 20]];
    let refused = format!("cannot read capture file beyond byte {}", whole.len());
    let found = read(long.concat(), None);
    assert!(found[0] == SENT && found[1].starts_with(&refused), "{found:?}");
    for bytes in [&b""[..], b"keepup", &[0; 100]] {
        assert_eq!(read(bytes.to_vec(), None), ["cannot read capture file: it is neither pcap nor pcapng"]);
    }
    for (start, program) in
        [(&[0x1F, 0x8B, 8][..], "gzip"), (&[0x28, 0xB5, 0x2F, 0xFD], "zstd"), (b"\xFD7zXZ", "xz")]
    {
        let expected = format!("cannot read capture file: it is compressed by {program}");
        assert_eq!(read([start, &[0; 100]].concat(), None), [expected]);
    }
    for order in [LITTLE, BIG] {
        let found = read(order.pcap(0xA1B2_CD34, 1), None);
        assert_eq!(found, ["cannot read capture file: modified pcap format (a1b2cd34) is not supported"]);
    }
    assert_eq!(read(LITTLE.pcap(0xA1B2_C3D4, 1), None), ["the file has no packets"]);
    let crowd = [LITTLE.section(), LITTLE.interface(101, 6).repeat(INTERFACES_MAX + 1)].concat();
    assert!(read(crowd, None)[0].contains("damaged record"));
}

#[test]
fn blocks_shorter_than_any_block_are_refused() {
    for order in [LITTLE, BIG] {
        let before =
            [order.section(), order.interface(101, 6), order.enhanced(0, 7, &ipv4(&[1], 0))].concat();
        // Kinds with a parser of their own, process information among them, and an unknown one.
        for kind in [1, 3, 4, 5, 6, 9, 10, 0xBAD, 0x4000_0BAD, 0x8000_0001, 77] {
            for length in 0..12 {
                let file = [&before[..], &order.u32(kind), &order.u32(length), &[0; 64]].concat();
                let found = read(file, None);
                let refused = format!("cannot read capture file beyond byte {}", before.len());
                assert_eq!(found.len(), 2, "{kind} {length}: {found:?}");
                assert!(found[1].starts_with(&refused), "{kind} {length}: {found:?}");
            }
        }
    }
}

#[test]
fn a_read_error_is_reported() {
    struct Broken(std::io::Cursor<Vec<u8>>);
    impl Read for Broken {
        fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(space)? {
                0 if !space.is_empty() => Err(std::io::Error::other("the disk is gone")),
                read => Ok(read),
            }
        }
    }
    // More than the first read takes.
    let file = [LITTLE.pcap(0xA1B2_C3D4, 101), LITTLE.record((0, 0), &ipv4(&[1; 1000], 0), 0).repeat(3000)];
    let mut capture = Capture::open(Broken(std::io::Cursor::new(file.concat())), None).unwrap();
    let (mut chunk, mut count) = (Chunk::default(), 0);
    let error = loop {
        let read = capture.read(&mut chunk, u64::MAX);
        count += (0..).map_while(|index| chunk.packet(index)).count();
        match read {
            Ok(more) => assert!(more),
            Err(error) => break error,
        }
    };
    assert_eq!((error.to_string().as_str(), count), ("cannot read capture file: the disk is gone", 3000));
}

#[test]
fn chunks_are_limited_in_time_and_size() {
    let record = |ms: u32| LITTLE.record((0, 1000 * ms), &ipv4(&[1; 1000], 0), 0);
    let times = [10, 12, 15, 16, 9, 30];
    let file = [LITTLE.pcap(0xA1B2_C3D4, 101), times.map(record).concat()].concat();
    let mut capture = Capture::open(std::io::Cursor::new(file), None).unwrap();
    let (mut chunk, mut lengths) = (Chunk::default(), Vec::new());
    while capture.read(&mut chunk, 5_000_000).unwrap() {
        lengths.push((0..).map_while(|index| chunk.packet(index)).count());
    }
    assert_eq!((lengths, chunk.last_ns()), (vec![3, 2], Some(30_000_000)));
    let file = [LITTLE.pcap(0xA1B2_C3D4, 101), record(1).repeat(3000)].concat();
    let mut capture = Capture::open(std::io::Cursor::new(file), None).unwrap();
    let mut count = 0;
    loop {
        let more = capture.read(&mut chunk, u64::MAX).unwrap();
        assert!(chunk.bytes.len() <= CHUNK_BYTES);
        count += (0..).map_while(|index| chunk.packet(index)).count();
        if !more {
            break;
        }
    }
    assert_eq!(count, 3000);
}

fn sample(is_pcapng: bool) -> Vec<u8> {
    let packets = (0..20u8).map(|at| ipv4(&vec![at; usize::from(at) + 1], 0));
    match is_pcapng {
        true => {
            let head = [LITTLE.section(), LITTLE.interface(101, 9)].concat();
            packets.fold(head, |file, packet| [file, LITTLE.enhanced(0, 5, &packet)].concat())
        }
        false => {
            let head = LITTLE.pcap(0xA1B2_C3D4, 101);
            packets.fold(head, |file, packet| [file, LITTLE.record((0, 5), &packet, 0)].concat())
        }
    }
}

proptest! {
    #[test]
    fn a_file_that_ends_early_gives_the_packets_before(is_pcapng: bool, end in 48usize..1000) {
        let whole = sample(is_pcapng);
        let all = read(whole.clone(), None);
        prop_assert_eq!(all.len(), 20);
        let found = read(whole[..end.min(whole.len())].to_vec(), None);
        let packets: Vec<_> = found.iter().filter(|text| text.contains(" at ")).collect();
        prop_assert!(packets.iter().zip(&all).all(|(found, sent)| *found == sent), "{:?}", found);
        prop_assert!(found.len() - packets.len() <= 1);
    }

    #[test]
    fn damage_is_survived(
        is_pcapng: bool,
        changes in proptest::collection::vec((0usize..1000, any::<u8>()), 1..8),
    ) {
        let mut file = sample(is_pcapng);
        let length = file.len();
        changes.into_iter().for_each(|(at, byte)| file[at % length] = byte);
        // A record takes at least 16 bytes.
        prop_assert!(read(file, None).len() <= length / 16 + 8);
    }
}
