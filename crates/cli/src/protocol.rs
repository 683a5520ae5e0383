//! Flags for the protocol of a simulated detector.
use keepup_plan::Transport;
use keepup_stream::source::{DectrisVersion, Protocol, SourcePlan};

/// Flags for the protocol.
#[derive(clap::Args)]
pub(crate) struct ProtocolArgs {
    /// Protocol of the simulated detector; udp, vdif and spead have no back-pressure
    ///
    /// By default, `trial` and `qualify` send uncompressed images as dectris-v2 if the profile has the
    /// transport zeromq, and as pvaccess if it has the transport pvaccess. Everything else is sent as keepup.
    /// Sources on another machine (--source) always use keepup.
    #[arg(long = "as", value_enum, value_name = "PROTOCOL")]
    protocol: Option<As>,
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
    /// DECTRIS Stream V1 over ZeroMQ, one image per event; record with --from zmq://HOST:PORT
    DectrisV1,
    /// DECTRIS Stream V2 over ZeroMQ, one image per event; record with --from zmq://HOST:PORT
    DectrisV2,
    /// NTNDArray over pvAccess (TCP), one image per event, as areaDetector serves it; record with
    /// --from pva://HOST:PORT/SIM:Pva1:Image
    Pvaccess,
}

impl ProtocolArgs {
    /// The protocol, by default keepup's own.
    pub(crate) fn protocol(&self) -> Protocol {
        match self.protocol {
            None | Some(As::Keepup) => Protocol::Keepup,
            Some(As::Udp) => Protocol::Udp,
            Some(As::Vdif) => Protocol::Vdif { frames_per_second: self.frames_per_second },
            Some(As::Spead) => Protocol::Spead,
            Some(As::DectrisV1) => Protocol::Dectris(DectrisVersion::V1),
            Some(As::DectrisV2) => Protocol::Dectris(DectrisVersion::V2),
            Some(As::Pvaccess) => Protocol::PvAccess,
        }
    }

    /// The protocol of a trial of `plan`, by default that of the detector if the source can speak it.
    pub(crate) fn of_trial(&self, plan: &SourcePlan, transport: Transport, is_remote: bool) -> Protocol {
        let can_speak = |protocol| !is_remote && plan.clone().in_protocol(protocol).check().is_ok();
        let own = match transport {
            Transport::Zeromq => Some(Protocol::Dectris(DectrisVersion::V2)),
            Transport::Pvaccess => Some(Protocol::PvAccess),
            Transport::Tcp | Transport::Udp | Transport::File | Transport::SharedMemory => None,
        };
        match (self.protocol, own.filter(|own| can_speak(*own))) {
            (None, Some(own)) => own,
            _ => self.protocol(),
        }
    }

    /// `plan` in this protocol.
    pub(crate) fn apply(&self, plan: SourcePlan) -> SourcePlan {
        plan.in_protocol(self.protocol())
    }
}
