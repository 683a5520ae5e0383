//! Continuation of short transfers over several blocks.
use super::*;
use crate::pool::Pool;

#[test]
fn the_rest_of_a_short_write_starts_where_it_stopped() {
    let mut pool = Pool::new(2 << 20).unwrap();
    let parts = [5000usize, 3000, 7000].iter().enumerate().map(|(token, &bytes)| Part {
        block: pool.take(bytes).unwrap(),
        bytes,
        token: token as u64,
    });
    let mut gathered = Gathered {
        direction: Direction::Write,
        slot: FileSlot(0),
        offset: 0,
        parts: parts.collect(),
        bytes: 15000,
        done: 0,
        vectors: Vec::new(),
    };
    let lengths: &[(usize, &[usize])] = &[
        (0, &[5000, 3000, 7000]),
        (1, &[4999, 3000, 7000]),
        (5000, &[3000, 7000]),
        (7999, &[1, 7000]),
        (14999, &[1]),
    ];
    for &(done, expected) in lengths {
        gathered.done = done;
        gathered.set_vectors();
        assert_eq!(gathered.vectors.iter().map(|v| v.iov_len).collect::<Vec<_>>(), expected);
        let last = gathered.vectors.last().unwrap();
        let end = gathered.parts[2].block[..7000].as_ptr_range().end;
        assert_eq!(last.iov_base.cast::<u8>().wrapping_add(last.iov_len).cast_const(), end);
    }
}

/// The rest of a request may be in another registered region than its start.
#[test]
fn the_rest_of_a_short_write_is_in_its_own_region() {
    let mut pool = Pool::new(crate::pool::REGION_BYTES + (2 << 20)).unwrap();
    let first = pool.take(crate::pool::REGION_BYTES).unwrap();
    let second = pool.take(4096).unwrap();
    assert_eq!((first.region(), second.region()), (0, 1));
    let part = |block: Block, token| Part { bytes: 4096, block, token };
    let mut gathered = Gathered::new(Direction::Write, FileSlot(0), 0, part(first, 0));
    gathered.add(part(second, 1));
    assert_eq!(gathered.set_vectors(), 0);
    gathered.done = 4096;
    assert_eq!(gathered.set_vectors(), 1);
}
