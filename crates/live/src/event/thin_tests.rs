//! Thinned events.
use super::thin;
use crate::event::EventCard;

fn card(element: &str, shape: &[u64]) -> EventCard {
    EventCard {
        stream: 1,
        name: "a".into(),
        element: element.into(),
        shape: shape.to_vec(),
        compression: None,
        sequence: 0,
        timestamp_ns: 0,
    }
}

#[test]
fn an_image_is_thinned_to_every_second_pixel() {
    let image: Vec<u8> = (0..24u16).flat_map(u16::to_le_bytes).collect();
    let (shape, thinned) = thin(&card("u16", &[4, 6]), &image, 3).unwrap();
    let values: Vec<u16> = thinned.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    assert_eq!((shape, values), (vec![2, 3], vec![0, 2, 4, 12, 14, 16]));
}

#[test]
fn a_long_waveform_and_a_stack_of_images_are_thinned() {
    let (shape, thinned) = thin(&card("u8", &[10]), &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 4).unwrap();
    assert_eq!((shape, thinned), (vec![4], vec![0, 3, 6, 9]));
    let (shape, thinned) = thin(&card("u8", &[2, 1, 2]), &[1, 2, 3, 4], 8).unwrap();
    assert_eq!((shape, thinned), (vec![1, 2], vec![1, 2]), "the first of a stack");
    let (shape, thinned) = thin(&card("u8", &[1, 2, 2]), &[1, 2, 3, 4], 8).unwrap();
    assert_eq!((shape, thinned), (vec![2, 2], vec![1, 2, 3, 4]), "a stack of one is an image");
}

#[test]
fn small_opaque_compressed_and_inconsistent_events_are_unchanged() {
    assert_eq!(thin(&card("u8", &[2, 2]), &[1, 2, 3, 4], 2), None);
    assert_eq!(thin(&card("u8", &[]), &[1, 2, 3, 4], 2), None);
    assert_eq!(thin(&card("u8", &[8]), &[1, 2, 3, 4], 2), None, "another length");
    assert_eq!(thin(&card("x9", &[4]), &[1, 2, 3, 4], 2), None);
    assert_eq!(thin(&card("u8", &[u64::MAX, u64::MAX]), &[1, 2, 3, 4], 2), None);
    assert_eq!(thin(&card("u8", &[0, 4]), &[], 2), None);
    let compressed = EventCard { compression: Some("lz4".into()), ..card("u8", &[4]) };
    assert_eq!(thin(&compressed, &[1, 2, 3, 4], 2), None);
}
