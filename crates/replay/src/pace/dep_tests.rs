//! Dependency reduction and dependency-preserving pace.
use super::*;
use crate::testing::{Row, reads_at, script};

/// Direct predecessors by definition: completed before the request was issued, with no third
/// request in between.
fn by_definition(records: &[Record]) -> Vec<Vec<usize>> {
    let before = |a: usize, b: usize| {
        let end_ns = records[a].completion_ns();
        a < b && end_ns.is_some_and(|end_ns| end_ns <= records[b].issue_ns)
    };
    let all = 0..records.len();
    all.clone()
        .map(|b| {
            let direct = |a: &usize| before(*a, b) && !all.clone().any(|c| before(*a, c) && before(c, b));
            all.clone().filter(direct).collect()
        })
        .collect()
}

fn found(records: &[Record]) -> Vec<Vec<usize>> {
    let (ranks, needs) = depend(records);
    let of = |(from, until): &(u32, u32)| {
        let is_in = |index: &usize| ranks[*index] != NO_END && (*from..*until).contains(&ranks[*index]);
        (0..records.len()).filter(is_in).collect()
    };
    needs.iter().map(of).collect()
}

#[test]
fn what_lies_between_is_left_out() {
    // Sequential requests; the third depends on the second alone.
    let rows = [(0, 'R', 0, 4096, 10), (20, 'R', 0, 4096, 10), (40, 'R', 0, 4096, 10)];
    assert_eq!(found(&script(&rows).records), [vec![], vec![0], vec![1]]);
    // Two concurrent requests, both are predecessors.
    let rows = [(0, 'R', 0, 4096, 10), (5, 'R', 0, 4096, 20), (40, 'R', 0, 4096, 10)];
    assert_eq!(found(&script(&rows).records), [vec![], vec![], vec![0, 1]]);
}

#[test]
fn any_trace_is_reduced_as_the_definition_says() {
    let mut random = fastrand::Rng::with_seed(11);
    for longest in [1, 3, 20, 200] {
        for _ in 0..50 {
            let mut now = 0;
            let rows: Vec<Row> = (0..60)
                .map(|_| {
                    now += random.u64(..4);
                    (now, 'R', 0, 4096, random.u64(..longest))
                })
                .collect();
            let script = script(&rows);
            assert_eq!(found(&script.records), by_definition(&script.records), "{rows:?}");
        }
    }
}

#[test]
fn each_waits_for_those_before_and_then_thinks() {
    // 0 and 1 concurrent; 2 issued 5 us after the later of them; 3 does not depend on 2.
    let rows = [(0, 'R', 0, 4096, 10), (2, 'R', 0, 4096, 18), (25, 'R', 0, 4096, 100), (30, 'R', 0, 4096, 5)];
    let script = script(&rows);
    let mut dep = Dep::new(1.0, &script);
    assert_eq!(dep.next(0, 0), Next::Due(0, 0));
    assert_eq!(dep.next(0, 1), Next::At(2000));
    assert_eq!(dep.next(2000, 1), Next::Due(1, 2000));
    assert_eq!(dep.next(2000, 2), Next::Ended);
    dep.ended(1, 50_000);
    assert_eq!(dep.next(50_000, 1), Next::Ended);
    // The first takes long here: its own think times apply, 15 us to the third, 20 us to the
    // fourth.
    dep.ended(0, 100_000);
    assert_eq!(dep.next(100_000, 0), Next::At(115_000));
    assert_eq!(dep.next(115_000, 0), Next::Due(2, 115_000));
    assert_eq!(dep.next(200_000, 1), Next::Due(3, 120_000));
    assert_eq!(dep.next(200_000, 2), Next::Over);
    // Twice the speed halves the think time.
    let mut dep = Dep::new(2.0, &script);
    assert_eq!((dep.next(0, 0), dep.next(0, 1)), (Next::Due(0, 0), Next::At(1000)));
}

#[test]
fn whatever_the_target_does_all_are_made_once_and_never_before_what_they_need() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut now = 0;
    let rows: Vec<Row> = (0..2000)
        .map(|_| {
            now += random.u64(..8);
            (now, 'R', 0, 4096, random.u64(..60))
        })
        .collect();
    let script = script(&rows);
    let needs = by_definition(&script.records);
    let mut dep = Dep::new(1.0, &script);
    let (mut now_ns, mut in_flight) = (0, Vec::new());
    let mut ended = vec![false; script.records.len()];
    let mut made = 0;
    loop {
        match dep.next(now_ns, in_flight.len()) {
            Next::Due(index, due_ns) => {
                assert!(due_ns <= now_ns && needs[index].iter().all(|need| ended[*need]), "{index}");
                made += 1;
                in_flight.push(index);
            }
            Next::At(due_ns) if in_flight.is_empty() || random.bool() => now_ns = due_ns,
            Next::At(_) | Next::Ended => {
                let index = in_flight.swap_remove(random.usize(..in_flight.len()));
                now_ns += random.u64(..10_000);
                ended[index] = true;
                dep.ended(index, now_ns);
            }
            Next::Over => break,
        }
    }
    assert_eq!(made, script.records.len());
}

#[test]
fn without_overlap_it_is_a_chain() {
    let script = reads_at((0..100).map(|n| n * 10));
    let (_, needs) = depend(&script.records);
    assert!(needs[1..].iter().enumerate().all(|(n, need)| *need == (n as u32, n as u32 + 1)));
}
