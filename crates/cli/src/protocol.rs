//! Flags for the protocol of a simulated detector.
use keepup_stream::source::{Protocol, SourcePlan};

/// Flags for the protocol.
#[derive(clap::Args)]
pub(crate) struct ProtocolArgs {
    /// Protocol of the simulated detector; udp, vdif and spead do not wait for the recorder
    #[arg(long = "as", value_enum, default_value_t = As::Keepup, value_name = "PROTOCOL")]
    protocol: As,
    /// Frames per second of each VDIF thread, used to number the frames
    #[arg(long, value_name = "N", default_value_t = 1000)]
    frames_per_second: u64,
}

/// Protocol of a simulated detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum As {
    /// keepup's own protocol over TCP, with acknowledgements
    Keepup,
    /// One UDP packet per event, starting with an 8-byte counter; record with --from udp://:PORT,skip=8
    Udp,
    /// One VDIF frame per UDP packet; record with --from vdif://:PORT,frames-per-second=N
    Vdif,
    /// One SPEAD heap per event, in UDP packets of 8 KiB; record with --from spead://:PORT
    Spead,
}

impl ProtocolArgs {
    /// The protocol.
    pub(crate) fn protocol(&self) -> Protocol {
        match self.protocol {
            As::Keepup => Protocol::Keepup,
            As::Udp => Protocol::Udp,
            As::Spead => Protocol::Spead,
            As::Vdif => Protocol::Vdif { frames_per_second: self.frames_per_second },
        }
    }

    /// `plan` in this protocol.
    pub(crate) fn apply(&self, plan: SourcePlan) -> SourcePlan {
        plan.in_protocol(self.protocol())
    }
}
