//! Who listens, by the kernel's table.

use super::*;

const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 0100007F:1E4B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 232090 1
   1: 0100007F:92C0 0100007F:1E4C 06 00000000:00000000 03:00001716 00000000     0        0 0 3
";

#[test]
fn only_listeners_listen() {
    assert!(lists(TABLE, 0x1e4b));
    assert!(!lists(TABLE, 0x92c0), "its connection has ended");
    assert!(!lists(TABLE, 0x1e4c), "that is the other side");
    assert!(!lists("", 1) && !lists("header\n :::\n", 1));
}

#[test]
fn a_free_port_is_one_until_somebody_listens() {
    let address = free_address().unwrap();
    let listener = TcpListener::bind(address).unwrap();
    assert!(is_listening(std::process::id(), address.port()));
    drop(listener);
    // A child that another test is starting has a copy of the listener until it becomes its program.
    let ends = |_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        !is_listening(std::process::id(), address.port())
    };
    assert!((0..500).any(ends));
}
