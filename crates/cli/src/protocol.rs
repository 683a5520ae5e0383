//! Flags for the protocol of a simulated detector.
use keepup_plan::{Profile, Transport};
use keepup_stream::source::{DectrisVersion, Protocol, Rate, SourcePlan};

use crate::args::size;

/// Flags for the protocol.
#[derive(clap::Args)]
pub(crate) struct ProtocolArgs {
    /// Protocol of the simulated detector; udp, vdif, spead and files have no back-pressure
    ///
    /// By default, `trial` and `qualify` use the transport of the profile: dectris-v2 for zeromq, pvaccess
    /// for pvaccess, and, below full speed, spead for spead and files for file. Otherwise keepup. A source on
    /// another machine (--source) supports all protocols except files.
    #[arg(long = "as", value_enum, value_name = "PROTOCOL")]
    protocol: Option<As>,
    /// Frames per second of each VDIF thread, used to number the frames
    #[arg(long, value_name = "N", default_value_t = 1000)]
    frames_per_second: u64,
    /// Limit on the total size of the files of a simulated program; the oldest are removed first
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1GiB")]
    keep_files: u64,
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
    /// One file per event, written under a hidden name and renamed; record with --from dir:PATH
    Files,
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
            Some(As::Files) => Protocol::Files,
        }
    }

    /// The protocol of a trial of `plan`, by default that of the detector if the source can speak it.
    /// `has_place`: there is a directory for files.
    pub(crate) fn of_trial(
        &self,
        plan: &SourcePlan,
        profile: &Profile,
        is_remote: bool,
        has_place: bool,
    ) -> Protocol {
        let of_detector = match profile.transport {
            Transport::Zeromq => Some(Protocol::Dectris(DectrisVersion::V2)),
            Transport::Pvaccess => Some(Protocol::PvAccess),
            Transport::Spead => Some(Protocol::Spead),
            // A file has no shape, which reductions need.
            Transport::File if has_place && profile.reductions.is_empty() => Some(Protocol::Files),
            Transport::Tcp | Transport::Udp | Transport::File | Transport::SharedMemory => None,
        };
        let can_speak = |protocol: &Protocol| {
            let has_schedule = plan.rate != Rate::Max || protocol.has_flow_control();
            let can_reach = !is_remote || protocol.can_be_remote();
            has_schedule && can_reach && plan.clone().in_protocol(*protocol).check().is_ok()
        };
        match self.protocol {
            None => of_detector.filter(can_speak).unwrap_or(Protocol::Keepup),
            Some(_) => self.protocol(),
        }
    }

    /// Size of the files of a simulated detector above which the oldest are removed, bytes.
    pub(crate) fn keep_files(&self) -> u64 {
        self.keep_files
    }

    /// `plan` in this protocol.
    pub(crate) fn apply(&self, plan: SourcePlan) -> SourcePlan {
        plan.in_protocol(self.protocol())
    }
}
