//! Payloads: equal each time, distinct between pages, with the checksum of what is appended.
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::wire::crc32;

fn event(stream: u32, sequence: u64, bytes: u64) -> Event {
    Event { slot: 0, stream, sequence, due_ns: 0, bytes }
}

fn whole(payload: &Payload, event: &Event) -> Vec<u8> {
    let (mut out, mut from) = (vec![7; 64], 0);
    while from < event.bytes {
        from = payload.append(event, from, &mut out);
    }
    out.split_off(64)
}

#[test]
fn no_two_pages_are_equal() {
    let payload = Payload::new(1);
    let mut pages = BTreeSet::new();
    for stream in 0..8 {
        for sequence in 0..50 {
            let bytes = whole(&payload, &event(stream, sequence, 10 * PAGE_BYTES as u64));
            bytes.chunks(PAGE_BYTES).for_each(|page| assert!(pages.insert(page.to_vec())));
        }
    }
}

proptest! {
    #[test]
    fn an_event_is_the_same_each_time(
        sequence in 0..u64::MAX, stream in 0..65_536u32, bytes in 0..1_500_000u64, seed in any::<u64>()
    ) {
        let event = event(stream, sequence, bytes);
        let (mut first, other) = (Payload::new(seed), Payload::new(seed));
        let sent = whole(&first, &event);
        whole(&first, &Event { sequence: sequence / 2, ..event });
        prop_assert_eq!(sent.len() as u64, bytes);
        prop_assert_eq!(first.crc(&event), crc32(&sent));
        prop_assert!(whole(&other, &event) == sent && whole(&first, &event) == sent);
    }
}
