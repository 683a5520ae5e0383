//! Network counters from the kernel's texts.

use std::fs;

use proptest::prelude::*;

use super::*;

const SNMP: &str = "\
Ip: Forwarding DefaultTTL InReceives ReasmFails\nIp: 2 64 2964 6\n\
Tcp: RtoAlgorithm RtoMin RtoMax MaxConn InSegs OutSegs RetransSegs\nTcp: 1 200 120000 -1 2836 2093 7\n\
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 127 2 9 128 8 1\n\
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdpLite: 5 5 5 5 5\n";

const SNMP6: &str = "Ip6InReceives 3\nUdp6InDatagrams 10\nUdp6RcvbufErrors\t20\nUdp6InErrors 21\n";

const DEV: &str = "\
Inter-|   Receive                            |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
    lo:3193      29    0    0    0     0          0         0     3193      29    0    0    0     0
  eth0: 58889388    2939    1    2    3     0          0         0   273455    2153    4    5    0     0
";

const SOFTNET: &str = "00000008 00000001 00000002 00000000\n00000b90 00000000 00000010 00000000\n";

fn machine(snmp6: bool) -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let net = tree.path().join("proc/net");
    fs::create_dir_all(&net).unwrap();
    for (name, text) in [("snmp", SNMP), ("dev", DEV), ("softnet_stat", SOFTNET)] {
        fs::write(net.join(name), text).unwrap();
    }
    if snmp6 {
        fs::write(net.join("snmp6"), SNMP6).unwrap();
    }
    tree
}

#[test]
fn every_counter_is_found() {
    let counters = NetCounters::read(machine(false).path()).unwrap();
    let protocols = ProtocolCounters {
        tcp_received: 2836,
        tcp_sent: 2093,
        tcp_retransmitted: 7,
        udp_received: 127,
        udp_sent: 128,
        udp_receive_errors: 9,
        udp_receive_buffer_errors: 8,
        udp_send_buffer_errors: 1,
        udp_no_port: 2,
        ip_reassembly_failed: 6,
    };
    let eth0 = InterfaceCounters {
        received_bytes: 58_889_388,
        received_packets: 2939,
        receive_errors: 1,
        receive_dropped: 2,
        receive_overruns: 3,
        sent_bytes: 273_455,
        sent_packets: 2153,
        send_errors: 4,
        send_dropped: 5,
    };
    assert_eq!(counters.protocols, protocols);
    assert_eq!(counters.interfaces.keys().collect::<Vec<_>>(), ["eth0", "lo"]);
    assert_eq!(counters.interfaces["eth0"], eth0);
    assert_eq!(counters.interfaces["lo"].received_bytes, 3193);
    assert_eq!(counters.softnet, SoftnetCounters { processed: 8 + 0xb90, dropped: 1, squeezed: 18 });
}

#[test]
fn drops_on_ipv6_count_too() {
    let protocols = NetCounters::read(machine(true).path()).unwrap().protocols;
    assert_eq!(protocols.udp_received, 137);
    assert_eq!((protocols.udp_receive_errors, protocols.udp_receive_buffer_errors), (30, 28));
    assert_eq!(protocols.tcp_received, 2836);
}

#[test]
fn growth_between_two_readings() {
    let before = NetCounters::read(machine(false).path()).unwrap();
    let mut after = before.clone();
    after.protocols.udp_receive_buffer_errors += 5;
    after.softnet.dropped += 3;
    after.interfaces.get_mut("eth0").unwrap().received_bytes += 1000;
    after.interfaces.insert("new0".into(), InterfaceCounters { sent_bytes: 9, ..Default::default() });
    let grown = after.since(&before);
    let protocols = ProtocolCounters { udp_receive_buffer_errors: 5, ..Default::default() };
    assert_eq!(grown.protocols, protocols);
    assert_eq!(grown.softnet, SoftnetCounters { dropped: 3, ..Default::default() });
    assert_eq!(grown.interfaces["eth0"], InterfaceCounters { received_bytes: 1000, ..Default::default() });
    assert_eq!(grown.interfaces["new0"].sent_bytes, 9);
    assert_eq!(grown.interfaces["lo"], InterfaceCounters::default());
}

#[test]
fn a_missing_file_is_named() {
    let machine = machine(false);
    fs::remove_file(machine.path().join("proc/net/softnet_stat")).unwrap();
    let error = NetCounters::read(machine.path()).unwrap_err().to_string();
    assert!(error.contains("proc/net/softnet_stat"), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_survived(
        text in "((Tcp|Udp): .*\n|[a-z0-9]*:( [0-9]{1,25}){0,16}\n|([0-9a-f]{8} ){0,5}\n|.)*",
    ) {
        parse_snmp(&text);
        parse_snmp6(&text);
        parse_interfaces(&text);
        parse_softnet(&text);
    }
}
