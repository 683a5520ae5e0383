//! Layouts of images.
use super::*;

fn layout(codec: &str, element: Option<ElementType>, shape: &[u64]) -> Layout {
    Layout { element, shape: shape.to_vec(), codec: codec.to_owned() }
}

#[test]
fn only_known_formats_are_labelled() {
    let lz4 = layout("lz4", Some(ElementType::U16), &[4, 8]);
    assert_eq!((lz4.compression(), lz4.is_opaque()), (Some(Compression::Lz4), false));
    for opaque in [
        layout("blosc", Some(ElementType::U16), &[4, 8]),
        layout("lz4", None, &[4, 8]),
        layout("bslz4", Some(ElementType::U16), &[4, 0]),
        layout("bslz4", Some(ElementType::F64), &[u64::MAX, 2]),
    ] {
        assert!(opaque.compression().is_none() && opaque.is_opaque(), "{opaque:?}");
        assert_eq!(opaque.chunk_header(5), Some(Vec::new()));
    }
    assert!(!layout("", Some(ElementType::U8), &[1]).is_opaque());
}

#[test]
fn lz4_of_more_than_a_block_is_not_readable() {
    let large = layout("lz4", Some(ElementType::U8), &[1 << 31]);
    assert_eq!(
        (large.chunk_header(5), layout("lz4", Some(ElementType::U8), &[5]).chunk_header(5)),
        (None, None)
    );
}

#[test]
fn an_image_without_dimensions_is_a_line() {
    let fields = Fields::default();
    let array = Array { element: ElementType::U16, bytes: 20..40 };
    assert_eq!(fields.layout(&array).unwrap().unwrap().shape, [10]);
    assert_eq!(fields.layout(&Array { bytes: 20..20, ..array }).unwrap(), None);
}

#[test]
fn times_that_are_not_set_are_ignored() {
    let time = |seconds, nanoseconds| Time { seconds, nanoseconds };
    assert_eq!(time(2, 5).ns(), Some(2_000_000_005));
    for unset in [time(0, 5), time(-1, 0), time(1, -1), time(1, 1_000_000_000), time(i64::MAX, 0)] {
        assert_eq!(unset.ns(), None);
    }
    let fields = Fields { time: time(3, 0), ..Fields::default() };
    assert_eq!(fields.time_ns(), Some(3_000_000_000));
}

#[test]
fn compressed_images_without_dimensions_are_opaque() {
    let layout = |shape: Vec<u64>| Layout { element: Some(ElementType::U16), shape, codec: "lz4".into() };
    assert!(layout(Vec::new()).compression().is_none() && layout(Vec::new()).is_opaque());
    assert_eq!(layout(vec![2, 3]).compression(), Some(Compression::Lz4));
}
