//! What the clients print, read.

use super::*;

#[test]
fn what_arrived_is_read_and_not_what_was_sent() {
    let keepup = r#"{"failure":null,"runs":[{"flows":[
        {"sent":{"bytes":99},"received":{"bytes":40,"messages":4,"seconds":2.0}},
        {"sent":{"bytes":99},"received":{"bytes":60,"messages":6,"seconds":2.0}}],
        "ledger":{"due":20,"received":15}}]}"#;
    let said = read_keepup(keepup).unwrap();
    assert_eq!(said, ClientReport { bytes: 100, datagrams: Some(10), lost: Some(0.25), seconds: 2.0 });
    let tcp = read_keepup(&keepup.replace(r#"{"due":20,"received":15}"#, "null")).unwrap();
    assert_eq!((tcp.datagrams, tcp.lost), (None, None));
    assert!(read_keepup(r#"{"failure":"it has gone","runs":[]}"#).unwrap_err().to_string().contains("gone"));
    let iperf3 = r#"{"end":{"sum_sent":{"bytes":9},"sum_received":{"bytes":80,"seconds":4.0}}}"#;
    let said = read_iperf3(iperf3).unwrap();
    assert_eq!(said, ClientReport { bytes: 80, datagrams: None, lost: None, seconds: 4.0 });
    let udp = r#"{"end":{"sum":{"bytes":1000,"seconds":1.0,"packets":10,"lost_packets":4}}}"#;
    let said = read_iperf3(udp).unwrap();
    assert_eq!(said, ClientReport { bytes: 600, datagrams: Some(6), lost: Some(0.4), seconds: 1.0 });
    assert!(read_iperf3(r#"{"error":"no route"}"#).unwrap_err().to_string().contains("no route"));
    let nuttcp = "megabytes=2.0000 real_seconds=0.50 rate_Mbps=33.55 tx_cpu=1 rx_cpu=2\n";
    let said = read_nuttcp(nuttcp).unwrap();
    assert_eq!((said.bytes, said.seconds), (2 << 20, 0.5));
    assert!(read_nuttcp("nuttcp-t: v6.1.2: Error").is_err());
}
