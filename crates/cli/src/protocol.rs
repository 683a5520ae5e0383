//! Flags for the protocol of a simulated detector.
use keepup_stream::source::{Protocol, SourcePlan};

/// Flags for the protocol.
#[derive(clap::Args)]
pub(crate) struct ProtocolArgs {
    /// Protocol of the detector: UDP packets and VDIF frames are sent without waiting for the recorder
    #[arg(long = "as", value_enum, default_value_t = As::Keepup, value_name = "PROTOCOL")]
    protocol: As,
    /// Frames of a VDIF thread per second, by which they are numbered
    #[arg(long, value_name = "N", default_value_t = 1000)]
    frames_per_second: u64,
}

/// Protocol of a simulated detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum As {
    /// keepup's own, over TCP, with acknowledgements
    Keepup,
    /// A UDP packet for each event, behind its sequence number: record --from udp://:PORT,skip=8
    Udp,
    /// A UDP packet for each event, which is a VDIF frame: record --from vdif://:PORT,frames-per-second=N
    Vdif,
}

impl ProtocolArgs {
    /// The protocol.
    pub(crate) fn protocol(&self) -> Protocol {
        match self.protocol {
            As::Keepup => Protocol::Keepup,
            As::Udp => Protocol::Udp,
            As::Vdif => Protocol::Vdif { frames_per_second: self.frames_per_second },
        }
    }

    /// `plan` in this protocol.
    pub(crate) fn apply(&self, plan: SourcePlan) -> SourcePlan {
        plan.in_protocol(self.protocol())
    }
}
