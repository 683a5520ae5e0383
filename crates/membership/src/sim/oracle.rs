//! What must hold, and what is true: durable copies of every stream, whichever disk has them.
use crate::message::HostId;

/// Ranges of a stream that are durable, apart from each other and in order.
#[derive(Clone, Debug, Default)]
struct Durable {
    ranges: Vec<(u64, u64)>,
    taker: Option<HostId>,
}

impl Durable {
    fn add(&mut self, first: u64, end: u64) {
        let (mut low, mut high) = (first, end);
        self.ranges.retain(|&(a, b)| {
            let touches = a <= high && low <= b;
            if touches {
                (low, high) = (low.min(a), high.max(b));
            }
            !touches
        });
        let place = self.ranges.partition_point(|&(a, _)| a < low);
        self.ranges.insert(place, (low, high));
    }

    /// All events below it are durable.
    fn watermark(&self) -> u64 {
        self.ranges.first().filter(|range| range.0 == 0).map_or(0, |range| range.1)
    }
}

/// The oracle.
#[derive(Debug)]
pub(super) struct Oracle {
    streams: Vec<Durable>,
    /// What has been broken.
    pub(super) broken: Vec<String>,
}

impl Oracle {
    pub(super) fn new(streams: u32) -> Self {
        Self { streams: vec![Durable::default(); streams as usize], broken: Vec::new() }
    }

    /// A recorder takes events of a stream; returns the one that took them before, if that is another.
    pub(super) fn taken(&mut self, stream: u32, host: HostId) -> Option<HostId> {
        let before = self.streams[stream as usize].taker.replace(host);
        before.filter(|&before| before != host)
    }

    /// Events are on a disk.
    pub(super) fn durable(&mut self, stream: u32, first: u64, end: u64) {
        self.streams[stream as usize].add(first, end);
    }

    /// A source has been promised all events below `end`.
    pub(super) fn acknowledged(&mut self, stream: u32, end: u64) {
        let watermark = self.streams[stream as usize].watermark();
        if end > watermark {
            self.broken.push(format!("stream {stream}: {end} acknowledged, {watermark} durable"));
        }
    }

    /// Number of durable events of a stream.
    pub(super) fn watermark(&self, stream: u32) -> u64 {
        self.streams[stream as usize].watermark()
    }
}
