//! Arbitrary bytes as control messages, unauthenticated and authenticated, and as datagram numbers.
#![no_main]

use keepup_workload::net::{Sequence, conversation};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // A stranger is never heard for longer than a friend.
    assert!(conversation(data, false) <= conversation(data, true));
    let mut sequence = Sequence::new();
    let numbers = data.chunks_exact(8).map(|word| word.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)));
    let mut count = 0;
    for number in numbers {
        sequence.came(number);
        count += 1;
    }
    let told = sequence.unique + sequence.duplicates + sequence.too_late;
    assert_eq!(told, count);
    assert!(sequence.reordered <= sequence.unique);
});
