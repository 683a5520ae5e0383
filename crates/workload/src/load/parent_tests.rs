//! Readings of a load are bounded and complete in time.
use super::*;

#[test]
fn readings_are_thinned_and_keep_their_ends() {
    let mut readings = Readings::default();
    let all = 5 * READINGS_MAX as u64;
    for n in 0..=all {
        readings.push(LoadReading { t_ns: n * 100 * MS, amount: n * 1000, cpu_ns: 0 });
    }
    let kept = readings.all();
    assert!(kept.len() <= READINGS_MAX + 1 && kept.len() > READINGS_MAX / 4, "{}", kept.len());
    assert_eq!((kept[0].t_ns, kept[kept.len() - 1].t_ns), (0, all * 100 * MS));
    assert!(kept.windows(2).all(|pair| pair[0].t_ns < pair[1].t_ns));
    let window = (MS, all * 100 * MS - MS);
    let found = LoadResult::of("net=10 kB/s".into(), keepup_results::LoadKind::Net, 1e4, &kept, window);
    assert!((found.achieved.unwrap() - 1e4).abs() < 1e-3, "{found:?}");
}

#[test]
fn what_a_process_tells_is_taken_in_order() {
    let mut log = ReportLog::default();
    let lines = [
        Report::Done { t_ns: 5, amount: 0, cpu_ns: 0 },
        Report::Begun { t_ns: 10, notes: vec!["slow".into()] },
        Report::Done { t_ns: 9, amount: 0, cpu_ns: 0 },
        Report::Done { t_ns: 20, amount: 7, cpu_ns: 3 },
        Report::Failed { why: "no".into() },
    ];
    for report in lines {
        log.take(serde_json::from_str(&report.line()).unwrap());
    }
    let last = LoadReading { t_ns: 20, amount: 7, cpu_ns: 3 };
    assert_eq!(log.readings.all(), [LoadReading { t_ns: 10, amount: 0, cpu_ns: 0 }, last]);
    assert_eq!((log.failed.as_deref(), log.notes.len()), (Some("no"), 1));
}
