//! Streams of a recorder that is one of several.
use std::fmt;
use std::net::SocketAddr;

/// Which streams the recorders of a fleet take, and whether this one may accept events now. Methods are
/// called by intake threads and do not block.
pub trait Assignment: Send + Sync + fmt::Debug {
    /// Whether events may be accepted at this time of the recorder's clock, ns. If not, connections wait.
    fn is_open(&self, now_ns: u64) -> bool;

    /// Whether this recorder takes a stream.
    fn takes(&self, stream: u32) -> bool;

    /// Version of the assignment; higher is newer.
    fn epoch(&self) -> u64;

    /// Where the recorder of a stream listens; none if no recorder takes the stream.
    fn locate(&self, stream: u32) -> Option<SocketAddr>;
}
