//! A machine in plain numbers: what each of its resources can do, what one path asks of them for a byte and
//! for an operation, and what else runs beside it.

/// What a resource has so much of in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Currency {
    /// Bytes that it passes on.
    Bytes,
    /// Operations that it does.
    Operations,
    /// Cycles of a processor.
    Cycles,
    /// Seconds in which it is busy: a thread, or anything that does one thing after another.
    Seconds,
}

/// Something that a path takes up: a bus, a link, disks, cores.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// What the machine calls it.
    pub name: String,
    /// Of what it has so much a second.
    pub currency: Currency,
    /// That of all of its kind together, each second.
    pub capacity: f64,
    /// How many of them there are, at least 1.
    pub count: u32,
}

/// A master of a bus that has few requests under way, and waits for each answer.
///
/// Its rate is `outstanding * request_bytes / (round_trip_seconds + wait)`. The wait is what another master
/// moves before the bus comes back: `behind_bytes` over the bus's capacity; none when no other flow is on the
/// bus. See `shared bus` in the book.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Requests under way.
    pub outstanding: f64,
    /// Bytes of each.
    pub request_bytes: f64,
    /// From a request to its last byte on a quiet bus, seconds.
    pub round_trip_seconds: f64,
    /// What another master moves in its turn, bytes.
    pub behind_bytes: f64,
}

/// What a path asks of one resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    /// Place in [`System::resources`].
    pub resource: usize,
    /// Of the resource's currency, for each byte of payload.
    pub per_byte: f64,
    /// Of the resource's currency, for each operation.
    pub per_operation: f64,
    /// Set where the path's master waits for answers there.
    pub window: Option<Window>,
}

/// Traffic beside the path that comes at its own rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// What it is.
    pub name: String,
    /// Its payload, bytes per second.
    pub bytes_per_second: f64,
    /// Bytes of each of its operations.
    pub operation_bytes: f64,
    /// What it asks for.
    pub uses: Vec<Use>,
}

/// One path through one machine.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// What there is.
    pub resources: Vec<Resource>,
    /// What the path asks for; one resource may stand there more than once.
    pub uses: Vec<Use>,
    /// Payload of one operation, bytes.
    pub operation_bytes: f64,
    /// What runs beside it.
    pub beside: Vec<Flow>,
}

impl Use {
    /// Of the resource's currency for a byte of payload, with operations of so many bytes.
    #[must_use]
    pub fn demand(&self, operation_bytes: f64) -> f64 {
        self.per_byte + self.per_operation / operation_bytes
    }
}

/// What all uses of one resource ask for a byte of payload.
pub(crate) fn demand(uses: &[Use], resource: usize, operation_bytes: f64) -> f64 {
    uses.iter().filter(|one| one.resource == resource).map(|one| one.demand(operation_bytes)).sum()
}
