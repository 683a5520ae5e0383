//! Rows, limits and texts of the account of rejected data.
use super::*;

fn packets(count: u64, detail: &str) -> Rejection {
    Rejection {
        sender: Some("10.0.0.7:4000".into()),
        reason: RejectReason::Malformed,
        unit: RejectUnit::Packet,
        count,
        is_foreign: false,
        detail: detail.into(),
    }
}

#[test]
fn the_first_of_a_kind_is_returned_and_later_ones_are_added() {
    let mut account = Rejections::default();
    let first = account.add("udp://:1", &packets(2, "too short")).expect("new");
    assert_eq!(
        first.to_string(),
        "udp://:1 from 10.0.0.7:4000: 2 packets not recorded (malformed): too short"
    );
    assert_eq!(account.add("udp://:1", &packets(u64::MAX, "bad header")), None);
    assert_eq!(account.add("udp://:1", &packets(0, "none")), None);
    let rows = account.rows();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].count, rows[0].detail.as_str()), (u64::MAX, "too short"));
}

#[test]
fn strangers_without_end_take_bounded_memory_and_all_are_counted() {
    let mut account = Rejections::default();
    for port in 0..10_000_u32 {
        let sender = Some(format!("10.0.0.8:{port}\n{}", "x".repeat(1000)));
        account.add("udp://:1", &Rejection { sender, ..packets(1, "é".repeat(500).as_str()) });
    }
    let rows = account.rows();
    assert_eq!(rows.len(), ROWS_MAX + 1);
    assert_eq!(rows.iter().map(|row| row.count).fold(0, u64::saturating_add), 10_000);
    assert!(rows.iter().all(|row| row.detail.len() <= TEXT_BYTES_MAX && !row.source.contains('\n')));
}

#[test]
fn copies_of_an_account_agree_in_any_order() {
    let mut account = Rejections::default();
    let early = account.add("udp://:1", &packets(2, "too short")).expect("new");
    account.add("udp://:1", &packets(5, "later"));
    let late = account.rows().remove(0);
    for rows in [[&early, &late, &late], [&late, &early, &late]] {
        let mut copy = Rejections::default();
        for row in rows {
            copy.raise(row);
        }
        assert_eq!(copy, account);
    }
}

#[test]
fn data_of_strangers_alone_leave_a_recording_complete_that_has_events() {
    let mut account = Rejections::default();
    account.add("udp://:1", &Rejection { is_foreign: true, ..packets(1, "unknown sender") });
    assert!(!makes_incomplete(&account.rows(), 1));
    assert!(makes_incomplete(&account.rows(), 0));
    account.add("udp://:1", &packets(1, "too short"));
    assert!(makes_incomplete(&account.rows(), 1));
    assert!(!makes_incomplete(&[], 0));
}

#[test]
fn names_are_those_of_json() {
    for reason in RejectReason::ALL {
        assert_eq!(serde_json::to_value(reason).expect("a name"), reason.name());
    }
}
