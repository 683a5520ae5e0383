//! Progress line of a recording.
use keepup_results::live::Moment;

/// Formats the progress line.
pub(super) fn status(moment: &Moment) -> String {
    let (flow, pool) = (&moment.flow, &moment.pool);
    let free = pool.room_seconds.map_or(String::new(), |seconds| format!(" ({seconds:.1} s left)"));
    let mb = |bytes_per_second: f64| bytes_per_second / 1e6;
    format!(
        "in {:.0} MB/s, written {:.0} MB/s, durable {:.0} MB/s, {:.2} GB so far, pool {:.0} % full{free}, \
         {} connections",
        mb(flow.received_bytes_per_second),
        mb(flow.written_bytes_per_second),
        mb(flow.durable_bytes_per_second),
        flow.durable.bytes as f64 / 1e9,
        pool.used_bytes as f64 / pool.bytes.max(1) as f64 * 100.0,
        flow.connections
    )
}
