//! biosnoop: issue times computed from completion times.
use crate::trace::tests::{names, read, refused, short};
use crate::{Operation, TraceClock};

const HEAD: &str = "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n";

#[test]
fn issue_is_completion_minus_latency_and_requests_are_sorted() {
    let (records, trace) = read(format!(
        "{HEAD}0.000004    supervise      1950   xvda1   W 13092560   4096      0.74\n\
         0.000178    Web Content    1950   xvda1   R 13092432   4096      0.61\n\
         1.500000                   1950   xvdb    W 8          0         0.10\n\
         1.500000    x              1950   xvdb    W 16         512       0.10\n\
         1.469000    jbd2/x-8       1950   xvdb    W 8          512     500.00\n"
    ));
    let expected = [
        (0, Some(740_000), Operation::Write, 0, 13_092_560 * 512, 4096),
        (304_000, Some(914_000), Operation::Read, 0, 13_092_432 * 512, 4096),
        (969_736_000, Some(1_469_736_000), Operation::Write, 1, 4096, 512),
        (1_500_636_000, Some(1_500_736_000), Operation::Write, 1, 8192, 512),
    ];
    assert_eq!(short(&records), expected);
    assert_eq!((names(&trace), trace.header().clock), (vec!["xvda1", "xvdb"], TraceClock::Completion));
    let corrections = trace.corrections();
    assert_eq!((corrections.zero_sizes, corrections.reordered), (1, 1));
}

#[test]
fn time_in_the_queue_precedes_the_latency() {
    let head = HEAD.replace("LAT(ms)", "QUE(ms) LAT(ms)");
    let (records, trace) =
        read(format!("{head}0.010000 a 1 sda R 8 512 2.5 3.25\n0.020000 a 1 sda R 8 512 0 1\n"));
    let times: Vec<_> = short(&records).iter().map(|record| (record.0, record.1)).collect();
    assert_eq!(times, [(0, Some(5_750_000)), (14_750_000, Some(15_750_000))]);
    let stages = trace.stages().unwrap();
    assert_eq!(stages.records, 2);
    assert!((stages.q2d.mean_ns / 1_250_000.0 - 1.0).abs() < 1e-3, "{stages:?}");
}

#[test]
fn unknown_columns_are_refused_by_name() {
    let message =
        refused("TIME(ms)     COMM           PID    LAT(ms)\n611        bash           4179      10\n");
    assert!(message.contains("no column TIME(s)") && message.contains("bpftrace"), "{message}");
    let message = refused(HEAD.replace("PID", "CGROUP"));
    assert!(message.contains("unknown column \"CGROUP\""), "{message}");
    let message = refused(format!("{HEAD}0.5 a 1 sda R 8 512\n0.5 sda R 8 512 1\n"));
    assert!(message.contains("line 2 of made"), "{message}");
}

/// The kernel's sector -1 of requests without data, letters of the version for libbpf, lost samples,
/// latencies of centuries and requests without a disk: all are in public reports.
#[test]
fn what_biosnoop_prints_besides_plain_requests_is_counted() {
    let (records, trace) = read(format!(
        "{HEAD}0.000004    jbd2/sda1-8    210    sda     W   8          4096      0.74\n\
         0.000104    kworker/1:1H   99     sda     W   18446744073709551615 0    1.34\n\
         0.000110    kworker/1:1H   99     sda     W   18446744073709551615 512  1.34\n\
         0.000114    kworker/1:1H   99     sda     FF  18446744073709551615 0    0.01\n\
         Possibly lost 10 samples\n\
         lost 5 events on CPU #1\n\
         0.000200    fio            7      sda     R   24         512 18014398509481984.00\n\
         0.000300    fio            7      sda     WSM 16         512       0.10\n\
         0.000400    fio            7      sda     N   16         512       0.10\n\
         0.000500    ?              0              R   0          8         0.10\n"
    ));
    let kinds: Vec<Operation> = records.iter().map(|record| record.operation).collect();
    let (write, read) = (Operation::Write, Operation::Read);
    assert_eq!(kinds, [write, Operation::Flush, write, read]);
    assert_eq!(names(&trace), ["sda", "?"]);
    let found = trace.corrections();
    assert_eq!((found.zero_sizes, found.too_large, found.not_kept), (1, 1, 15), "{found:?}");
    assert_eq!((found.absurd_times, found.other_operations), (1, 1), "{found:?}");
}
