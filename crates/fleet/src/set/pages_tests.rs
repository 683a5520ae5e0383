//! Answers that need several pages, damaged pages, and answers that are too long.
use super::*;

/// All pages of a packed answer.
fn transfer(packed: &str) -> (Pages, usize) {
    let (mut pages, mut count) = (Pages::default(), 0);
    while let Some(start) = pages.next() {
        let page = serde_json::to_string(&Page::of(packed, start).unwrap()).unwrap();
        assert!(page.len() <= PAGE_BYTES + 100);
        pages.take(&page).unwrap();
        count += 1;
    }
    (pages, count)
}

#[test]
fn a_long_answer_arrives_whole() {
    let answer: Vec<u64> =
        (0..400_000).map(|number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let (pages, count) = transfer(&pack(&answer).unwrap());
    assert!(count > 5, "{count}");
    assert_eq!(pages.unpack::<Vec<u64>>().unwrap(), answer);
    let (pages, count) = transfer(&pack(&[1]).unwrap());
    assert_eq!((pages.unpack::<Vec<u64>>().unwrap(), count), (vec![1], 1));
}

#[test]
fn pages_that_do_not_fit_are_refused() {
    let mut pages = Pages::default();
    let page = |total, start, text: &str| {
        serde_json::to_string(&Page { total, start, text: text.to_owned() }).unwrap()
    };
    for bad in [page(9, 1, "abc"), page(2, 0, "abc"), page(9, 0, ""), page(usize::MAX, 0, "abc")] {
        assert!(Pages::default().take(&bad).is_err(), "{bad}");
    }
    assert!(Pages::default().take("{}").is_err());
    pages.take(&page(9, 0, "abc")).unwrap();
    assert!(pages.take(&page(8, 3, "def")).is_err(), "another length");
    assert!(pages.take(&page(9, 0, "abc")).is_err(), "the first page again");
    assert_eq!(pages.next(), Some(3));
    pages.take(&page(9, 3, "def!!!")).unwrap();
    assert_eq!(pages.next(), None);
    assert!(pages.unpack::<u64>().unwrap_err().starts_with("cannot decode its result"));
    assert!(Page::of("abc", 4).is_err());
}

#[test]
fn an_answer_that_is_too_long_is_an_error() {
    let why = pack_within(&"x".repeat(2_000), 1_000).unwrap_err();
    assert!(why.contains("cannot encode the result: it has more than 1000 bytes"), "{why}");
    let small = pack_within(&"x".repeat(2_000), 3_000).unwrap();
    assert!(small.len() < 100, "it is compressed");
    assert!(unpack::<String>(&small, 1_000).unwrap_err().contains("more than 1000 bytes"));
    assert_eq!(unpack::<String>(&small, 3_000).unwrap().len(), 2_000);
}
