//! The client against a simulated target: every call, both byte orders, various MTUs and windows; refusals.
use keepup_measure::clock::SystemClock;

use super::*;
use crate::ipbus::packet::Info;
use crate::ipbus::simulator::tests::Running;
use crate::ipbus::simulator::{Faults, IDENTITY, IDENTITY_ADDRESS, TargetOptions};

fn client(target: &Running, options: ClientOptions) -> IpbusClient {
    IpbusClient::connect(target.address, options, Arc::new(SystemClock)).unwrap()
}

/// Words that are all different.
fn pattern(count: usize, seed: u32) -> Vec<u32> {
    (0..count as u32).map(|n| (n ^ seed).wrapping_mul(0x9E37_79B9)).collect()
}

/// Makes every call and checks its effect.
fn exercise(client: &mut IpbusClient, seed: u32) {
    let data = pattern(5000, seed);
    client.write_block(7, &data, false).unwrap();
    let mut back = vec![0; data.len()];
    client.read_block(7, &mut back, false).unwrap();
    assert_eq!(back, data);
    back.fill(0);
    client.read_each(7, &mut back, false).unwrap();
    assert_eq!(back, data);
    client.write_block(3, &data, true).unwrap();
    for calls in [IpbusClient::read_block, IpbusClient::read_each] {
        let mut same = vec![0; 600];
        calls(client, 3, &mut same, true).unwrap();
        assert_eq!(same, vec![data[4999]; 600]);
    }
    assert_eq!(client.read_single(8).unwrap(), data[1]);
    assert_eq!(client.rmw_bits(8, 0xFF00, 0x12).unwrap(), data[1]);
    assert_eq!(client.rmw_sum(8, u32::MAX).unwrap(), data[1] & 0xFF00 | 0x12);
    assert_eq!(client.read_single(8).unwrap(), (data[1] & 0xFF00 | 0x12) - 1);
    let mut configuration = [0];
    client.read_configuration(0, &mut configuration).unwrap();
    assert_eq!((configuration[0], client.read_single(IDENTITY_ADDRESS).unwrap()), (IDENTITY, IDENTITY));
    client.read_block(0, &mut [], false).unwrap();
}

#[test]
fn every_call_works_with_any_mtu_window_and_byte_order() {
    for (mtu_bytes, buffers, order, window) in [
        (1500, 16, ByteOrder::Big, 16),
        (1500, 16, ByteOrder::Little, 16),
        (92, 1, ByteOrder::Little, 16),
        (9000, 3, ByteOrder::Big, 2),
        (65_000, 64, ByteOrder::Little, 100),
    ] {
        let options = TargetOptions { mtu_bytes, buffers, ..TargetOptions::default() };
        let target = Running::start(&options);
        let options = ClientOptions { order, window, ..ClientOptions::default() };
        for seed in 0..3 {
            // Each client continues with the packet number of the previous one.
            let mut client = client(&target, options);
            exercise(&mut client, seed);
            assert_eq!(client.counters().recovered_requests, 0, "{:?}", client.counters());
        }
        let counters = target.end();
        assert_eq!((counters.foreign, counters.failed, counters.unsent), (0, 0, 0), "{counters:?}");
    }
}

#[test]
fn packet_numbers_wrap_around() {
    let options = TargetOptions { mtu_bytes: 92, ..TargetOptions::default() };
    let target = Running::start(&options);
    let mut client = client(&target, ClientOptions::default());
    // With 14 words a packet this is more than 65535 packets.
    let data = pattern(1 << 20, 1);
    client.write_block(0, &data, false).unwrap();
    let mut back = vec![0; 1000];
    client.read_each(0, &mut back, false).unwrap();
    assert_eq!(back, data[..1000]);
    assert!(client.counters().packets_sent > 65_536, "{:?}", client.counters());
}

#[test]
fn a_bus_error_names_its_address_and_the_client_continues() {
    let faults = Faults { bus_error: Some(1000), ..Faults::default() };
    let target = Running::start(&TargetOptions { words: 3000, faults, ..TargetOptions::default() });
    let mut client = client(&target, ClientOptions::default());
    let mut words = vec![0; 2000];
    let expect = |result: Result<(), IpbusError>, at: u32, code: Info| match result {
        Err(IpbusError::Bus { address, info, .. }) => assert_eq!((address, info), (at, code)),
        other => panic!("{other:?}"),
    };
    expect(client.read_block(0, &mut words, false), 1000, Info::READ_ERROR);
    expect(client.read_each(500, &mut words, false), 1000, Info::READ_ERROR);
    expect(client.read_block(1000, &mut words[..9], true), 1000, Info::READ_ERROR);
    expect(client.write_block(990, &words, false), 1000, Info::WRITE_ERROR);
    expect(client.rmw_sum(1000, 1).map(drop), 1000, Info::READ_ERROR);
    expect(client.read_block(2500, &mut words, false), 3000, Info::READ_ERROR);
    let why = client.read_single(1000).unwrap_err().to_string();
    assert!(why.contains("cannot read at address 0x000003e8 of 127.0.0.1"), "{why}");
    client.write_block(1001, &[5], false).unwrap();
    assert_eq!(client.read_single(1001).unwrap(), 5);
    let beyond = client.read_block(u32::MAX, &mut words, false).unwrap_err();
    assert!(matches!(beyond, IpbusError::Range { address: u32::MAX, words: 2000 }));
}

#[test]
fn invalid_settings_are_refused() {
    let target: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let good = ClientOptions::default();
    for options in [
        ClientOptions { timeout: Duration::ZERO, ..good },
        ClientOptions { timeout: Duration::from_secs(11), ..good },
        ClientOptions { attempts: 0, ..good },
        ClientOptions { window: 0, ..good },
    ] {
        let refused = IpbusClient::connect(target, options, Arc::new(SystemClock));
        assert!(matches!(refused, Err(IpbusError::Options(_))));
    }
    for (mtu_bytes, buffers) in [(91, 16), (0, 16), (1500, 0)] {
        let status = Status { mtu_bytes, buffers, next_id: 1, ..Status::default() };
        assert!(matches!(packet_words(&status, target), Err(IpbusError::Status { .. })));
    }
    let status = Status { mtu_bytes: u32::MAX, buffers: 16, next_id: 1, ..Status::default() };
    assert_eq!(packet_words(&status, target).unwrap(), DATAGRAM_BYTES_MAX / 4);
}
