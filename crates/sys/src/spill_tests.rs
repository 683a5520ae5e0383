//! A list that outgrows its memory keeps its elements, and says when its disk is full.
use super::*;

fn limit(elements: usize) -> SpillLimit {
    SpillLimit { elements, directory: Some(std::env::temp_dir()) }
}

#[test]
fn a_list_is_the_same_in_memory_and_in_a_file() {
    // More than one step of the file, so that it is mapped again.
    let count = 3 * STEP_BYTES as u64 / 16;
    for in_memory in [usize::MAX, 0, 1, 1000] {
        let mut list = SpillVec::new(limit(in_memory));
        for number in 0..count {
            list.push((number, !number)).unwrap();
        }
        assert_eq!(list.len() as u64, count);
        assert!(list.iter().enumerate().all(|(at, value)| *value == (at as u64, !(at as u64))));
        assert_eq!(list.spilled_bytes() > 0, in_memory < usize::MAX);
        list.settle().unwrap();
        list.retain_mut(|value| {
            value.1 = 7;
            value.0 % 3 == 0
        });
        assert!(list.iter().enumerate().all(|(at, value)| *value == (3 * at as u64, 7)));
        list[1].0 = 99;
        list.truncate(2);
        assert_eq!(&list[..], [(0, 7), (99, 7)]);
        list.push((5, 5)).unwrap();
        assert_eq!(list.last(), Some(&(5, 5)));
    }
}

#[test]
fn a_directory_that_does_not_exist_is_an_error() {
    let none = SpillLimit { elements: 1, directory: Some("/does/not/exist".into()) };
    let mut list = SpillVec::new(none);
    list.push(1_u8).unwrap();
    let message = list.push(2).unwrap_err().to_string();
    assert!(message.contains("cannot create a temporary file in /does/not/exist"), "{message}");
    assert_eq!(&list[..], [1]);
}
