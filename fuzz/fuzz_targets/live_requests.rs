//! Arbitrary bytes as what clients ask of a page: events of a tap, settings of a run; and as an event of a
//! source that is thinned to be looked at.
#![no_main]

use keepup_live::{EventCard, EventCopy, TapQuery};
use keepup_results::live::RunSettings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(asked) = TapQuery::parse(&String::from_utf8_lossy(data)) {
        assert!(asked.filter.every > 0 && asked.preview != Some(0));
        assert!(asked.filter.per_second.is_none_or(|rate| rate > 0.0));
    }
    if let Ok(settings) = serde_json::from_slice::<RunSettings>(data) {
        let again: RunSettings = serde_json::from_str(&serde_json::to_string(&settings).unwrap()).unwrap();
        assert_eq!(again, settings);
    }
    let Some((&[kind, dimensions, preview], rest)) = data.split_first_chunk::<3>() else { return };
    let (shape, payload) = rest.split_at(rest.len().min(usize::from(dimensions % 4)));
    let element = ["u8", "u16", "f32", "i64", "", "x999"][usize::from(kind) % 6].to_owned();
    let shape: Vec<u64> = shape.iter().map(|&n| if n == 255 { u64::MAX } else { n.into() }).collect();
    let card = EventCard {
        stream: 0,
        name: String::new(),
        element,
        shape,
        compression: None,
        sequence: 0,
        timestamp_ns: 0,
    };
    let most = u64::from(preview).max(1);
    let elements = card.shape.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
    let (head, sent) = EventCopy::new(card, payload.to_vec()).serialize(Some(most), None);
    let head: serde_json::Value = serde_json::from_str(&head).unwrap();
    if head["whole_shape"].is_null() {
        assert_eq!(sent, payload);
        return;
    }
    let thinned: Vec<u64> = serde_json::from_value(head["shape"].clone()).unwrap();
    assert!((1..=2).contains(&thinned.len()) && thinned.iter().all(|&n| (1..=most).contains(&n)));
    let element_bytes = payload.len() as u64 / elements.unwrap();
    assert_eq!(sent.len() as u64, element_bytes * thinned.iter().product::<u64>());
    assert!(sent.len() <= payload.len());
});
