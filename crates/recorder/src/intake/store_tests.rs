//! Memory of open blocks: how much each stream gets, and all of them together.
use std::path::PathBuf;

use keepup_measure::sum::Sums;
use keepup_recording::crc::crc32;
use keepup_stream::wire::ElementType;
use keepup_sys::waker::Waker;

use super::*;
use crate::{PlacementKind, Target};

const POOL_BYTES: usize = 64 << 20;
/// The most streams that this pool has memory for.
const STREAMS_MAX: u32 = (POOL_BYTES / OPEN_DIVISOR / SMALLEST) as u32;
/// Memory of the smallest block.
const SMALLEST: usize = 32 << 10;
/// Memory of the largest one.
const LARGEST: usize = (1 << 20) + (16 << 10);

/// A store without volumes: the memory of a sealed block is free at once.
fn store(streams: u32) -> Result<Store, Cause> {
    let target = Target::Volumes(vec![PathBuf::from("/nowhere")]);
    let config = RecorderConfig::new(([127, 0, 0, 1], 0).into(), target, "run");
    let counters = Arc::new(Counters::new(1, 0, 1));
    let volumes = Volumes::new(0, Vec::new(), PlacementKind::Free.build(0), Arc::clone(&counters));
    let shards = Arc::new(Shards::new(vec![Waker::new().unwrap()]));
    let pool = Pool::new(POOL_BYTES).unwrap();
    let mut store = Store::new(&config, shards, pool, (volumes, None), Vec::new(), counters);
    let infos: Vec<StreamInfo> = (0..streams)
        .map(|id| {
            let (name, shape) = (format!("s{id}"), vec![]);
            StreamInfo { id, name, element: ElementType::U8, shape, compression: None }
        })
        .collect();
    store.adopt(&infos, 0, &[], &Default::default())?;
    Ok(store)
}

/// Receives an event at a time.
fn receive(store: &mut Store, slot: usize, bytes: usize, now_ns: u64) {
    let payload = vec![7; bytes];
    let head = EventHead {
        index: 0,
        stream: slot as u32,
        sequence: store.streams[slot].next_sequence,
        timestamp_ns: 3,
        length: bytes as u64,
        crc: crc32(&payload),
    };
    assert_eq!(store.begin(slot, &head), Allocation::Ready);
    store.payload(slot, head.length).copy_from_slice(&payload);
    store.complete(slot, &head, head.crc, now_ns).unwrap();
    let open: usize = store.streams.iter().map(Stream::open_bytes).saturating_sum();
    assert_eq!(store.open_bytes, open);
    assert!(open <= POOL_BYTES / 2, "{open}");
}

/// Sizes of the open blocks.
fn open(store: &Store) -> Vec<usize> {
    store.streams.iter().map(Stream::open_bytes).collect()
}

#[test]
fn a_pool_has_memory_for_many_streams_and_says_when_it_does_not() {
    assert_eq!(STREAMS_MAX, 512);
    assert!(store(STREAMS_MAX).is_ok());
    let refused = store(STREAMS_MAX + 1).err().unwrap();
    assert_eq!(
        refused.to_string(),
        "cannot take 513 streams: they need a pool of 66 MiB, this one has 64 MiB"
    );
    assert_eq!(refused.hint().as_deref(), Some("keepup record --pool 66MiB"));
}

#[test]
fn streams_of_one_rate_share_a_quarter_of_the_pool_evenly() {
    let mut store = store(100).unwrap();
    for _ in 0..3000 {
        for slot in 0..100 {
            receive(&mut store, slot, 1000, 0);
        }
    }
    let open = open(&store);
    let (smallest, largest) = (open.iter().min().unwrap(), open.iter().max().unwrap());
    assert!(*largest <= *smallest * 2, "{open:?}");
    let all: usize = open.into_iter().saturating_sum();
    assert!((POOL_BYTES / 8..=POOL_BYTES / 4).contains(&all), "{all}");
}

#[test]
fn the_few_that_send_of_many_get_whole_blocks() {
    let mut store = store(STREAMS_MAX).unwrap();
    for slot in [0, 200, 511].into_iter().cycle().take(9000) {
        receive(&mut store, slot, 1000, 0);
    }
    // A sixteenth of what the other two leave of a quarter of the pool.
    let open = open(&store);
    for slot in [0, 200, 511] {
        assert!(open[slot] >= LARGEST * 3 / 4, "{}", open[slot]);
    }
}

#[test]
fn blocks_of_slow_streams_become_small_and_those_of_faster_ones_grow() {
    let mut store = store(200).unwrap();
    // All are slow: ten events are in a block when it is due by age.
    let mut now_ns = 0;
    for millisecond in 0..100_u64 {
        now_ns = millisecond * 1_000_000;
        (0..200).for_each(|slot| receive(&mut store, slot, 1000, now_ns));
        store.seal_aged(now_ns, 10_000_000);
    }
    assert!(open(&store).iter().all(|&bytes| bytes <= 2 * SMALLEST), "{:?}", open(&store));
    // One is a thousand times as fast from now on.
    let mut blocks = Vec::new();
    for _ in 0..5000 {
        receive(&mut store, 7, 1000, now_ns);
        let block = (store.streams[7].next_block, store.streams[7].open_bytes());
        if block.1 > 0 && blocks.last() != Some(&block) {
            blocks.push(block);
        }
    }
    let sizes: Vec<usize> = blocks.iter().map(|(_, bytes)| *bytes).collect();
    assert!(sizes[..6].is_sorted() && sizes[6] > SMALLEST * 8, "{sizes:?}");
}
