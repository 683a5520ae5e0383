//! Parsers of /proc/net (proc_pid_net(5), net/core/net-procfs.c).

use std::collections::BTreeMap;

use super::{InterfaceCounters, ProtocolCounters, SoftnetCounters};

/// /proc/net/snmp: pairs of lines, names above numbers. Missing values count as 0.
pub(crate) fn parse_snmp(text: &str) -> ProtocolCounters {
    let lines: Vec<&str> = text.lines().collect();
    let counter = |protocol: &str, name: &str| {
        let found = lines.windows(2).find_map(|pair| {
            let names = pair[0].strip_prefix(protocol)?.strip_prefix(':')?;
            let numbers = pair[1].strip_prefix(protocol)?.strip_prefix(':')?;
            let place = names.split_ascii_whitespace().position(|listed| listed == name)?;
            numbers.split_ascii_whitespace().nth(place)?.parse().ok()
        });
        found.unwrap_or(0)
    };
    ProtocolCounters {
        tcp_received: counter("Tcp", "InSegs"),
        tcp_sent: counter("Tcp", "OutSegs"),
        tcp_retransmitted: counter("Tcp", "RetransSegs"),
        udp_received: counter("Udp", "InDatagrams"),
        udp_sent: counter("Udp", "OutDatagrams"),
        udp_receive_errors: counter("Udp", "InErrors"),
        udp_receive_buffer_errors: counter("Udp", "RcvbufErrors"),
        udp_send_buffer_errors: counter("Udp", "SndbufErrors"),
        udp_no_port: counter("Udp", "NoPorts"),
        ip_reassembly_failed: counter("Ip", "ReasmFails"),
    }
}

/// /proc/net/snmp6: one name and number per line. TCP is 0 here, because /proc/net/snmp counts it
/// for both.
pub(crate) fn parse_snmp6(text: &str) -> ProtocolCounters {
    let counter = |name: &str| {
        let found = text.lines().find_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            if fields.next()? == name { fields.next()?.parse().ok() } else { None }
        });
        found.unwrap_or(0)
    };
    ProtocolCounters {
        udp_received: counter("Udp6InDatagrams"),
        udp_sent: counter("Udp6OutDatagrams"),
        udp_receive_errors: counter("Udp6InErrors"),
        udp_receive_buffer_errors: counter("Udp6RcvbufErrors"),
        udp_send_buffer_errors: counter("Udp6SndbufErrors"),
        udp_no_port: counter("Udp6NoPorts"),
        ip_reassembly_failed: counter("Ip6ReasmFails"),
        ..ProtocolCounters::default()
    }
}

/// /proc/net/dev: one line per interface, with eight receive and eight send counters.
pub(crate) fn parse_interfaces(text: &str) -> BTreeMap<String, InterfaceCounters> {
    text.lines().filter_map(parse_interface).collect()
}

fn parse_interface(line: &str) -> Option<(String, InterfaceCounters)> {
    // An alias has a colon in its name, and the first number may follow the last colon without a
    // blank.
    let (name, numbers) = line.rsplit_once(':')?;
    let numbers: Vec<u64> = numbers.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let [
        received_bytes,
        received_packets,
        receive_errors,
        receive_dropped,
        receive_overruns,
        _,
        _,
        _,
        sent_bytes,
        sent_packets,
        send_errors,
        send_dropped,
        ..,
    ] = numbers[..]
    else {
        return None;
    };
    let counters = InterfaceCounters {
        received_bytes,
        received_packets,
        receive_errors,
        receive_dropped,
        receive_overruns,
        sent_bytes,
        sent_packets,
        send_errors,
        send_dropped,
    };
    Some((name.trim().to_owned(), counters))
}

/// /proc/net/softnet_stat: one line of hexadecimal counters per core; summed.
pub(crate) fn parse_softnet(text: &str) -> SoftnetCounters {
    let mut sum = SoftnetCounters::default();
    for line in text.lines() {
        let mut counters =
            line.split_ascii_whitespace().map_while(|field| u64::from_str_radix(field, 16).ok());
        if let (Some(processed), Some(dropped), Some(squeezed)) =
            (counters.next(), counters.next(), counters.next())
        {
            sum.processed = sum.processed.saturating_add(processed);
            sum.dropped = sum.dropped.saturating_add(dropped);
            sum.squeezed = sum.squeezed.saturating_add(squeezed);
        }
    }
    sum
}
