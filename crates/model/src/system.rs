//! A machine in plain numbers: capacities of its resources, demands of one path per byte and
//! operation, and background traffic.

use keepup_measure::sum::Sums;

/// Currency of a resource's capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Currency {
    /// Bytes.
    Bytes,
    /// Operations.
    Operations,
    /// CPU cycles.
    Cycles,
    /// Busy seconds: a thread, or anything sequential.
    Seconds,
}

/// A resource: a bus, a link, disks, cores.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Name in the machine.
    pub name: String,
    /// Currency.
    pub currency: Currency,
    /// Total capacity per second.
    pub capacity: f64,
    /// Count, at least 1.
    pub count: u32,
}

/// A bus master with few outstanding requests that waits for each answer.
///
/// Its rate is `outstanding * request_bytes / (round_trip_seconds + wait)`. The wait is another
/// master's transfer before the bus is available again: `behind_bytes` over the bus's capacity;
/// zero without other flows on the bus. See `shared bus` in the book.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Outstanding requests.
    pub outstanding: f64,
    /// Bytes per request.
    pub request_bytes: f64,
    /// Time from a request to its last byte on an idle bus, seconds.
    pub round_trip_seconds: f64,
    /// Bytes of another master's turn.
    pub behind_bytes: f64,
}

/// Demand of a path on one resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    /// Index in [`System::resources`].
    pub resource: usize,
    /// Per payload byte, in the resource's currency.
    pub per_byte: f64,
    /// Per operation, in the resource's currency.
    pub per_operation: f64,
    /// Set where the path's master waits for answers.
    pub window: Option<Window>,
    /// Bytes that the path keeps in flight on a resource that serves requests in order of arrival, such as
    /// a disk; `None` for a resource with an arbiter.
    pub in_flight_bytes: Option<f64>,
}

/// Background traffic at a fixed rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Name.
    pub name: String,
    /// Payload, bytes per second.
    pub bytes_per_second: f64,
    /// Bytes per operation.
    pub operation_bytes: f64,
    /// Demands.
    pub uses: Vec<Use>,
}

/// One path through one machine.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// Resources.
    pub resources: Vec<Resource>,
    /// Demands of the path; a resource may occur more than once.
    pub uses: Vec<Use>,
    /// Payload per operation, bytes.
    pub operation_bytes: f64,
    /// Background traffic.
    pub beside: Vec<Flow>,
}

impl Use {
    /// Demand per payload byte with operations of this size, in the resource's currency.
    #[must_use]
    pub(crate) fn demand(&self, operation_bytes: f64) -> f64 {
        self.per_byte + self.per_operation / operation_bytes
    }
}

/// Bytes in flight on one resource; `None` if no use of it states any.
pub(crate) fn in_flight(uses: &[Use], resource: usize) -> Option<f64> {
    let stated = uses.iter().filter(|one| one.resource == resource).filter_map(|one| one.in_flight_bytes);
    stated.reduce(|sum, bytes| sum + bytes)
}

/// Total demand on one resource per payload byte.
pub(crate) fn demand(uses: &[Use], resource: usize, operation_bytes: f64) -> f64 {
    uses.iter().filter(|one| one.resource == resource).map(|one| one.demand(operation_bytes)).float_sum()
}
