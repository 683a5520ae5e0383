//! Settings of a network card, through the ethtool ioctl (linux/ethtool.h). Read-only.
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::SysError;

/// Read commands of linux/ethtool.h.
const GET_RING: u32 = 0x10;
const GET_PAUSE: u32 = 0x12;
const GET_RECEIVE_CHECKSUM: u32 = 0x14;
const GET_TSO: u32 = 0x1e;
const GET_GSO: u32 = 0x23;
const GET_FLAGS: u32 = 0x25;
const GET_GRO: u32 = 0x2b;
const GET_CHANNELS: u32 = 0x3c;
/// `ETH_FLAG_LRO`.
const FLAG_LRO: u32 = 1 << 15;

/// Ring sizes of a card in packets, current and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Received packets, in each queue.
    pub receive: u32,
    /// Maximum of `receive`.
    pub receive_max: u32,
    /// Packets to send, in each queue.
    pub send: u32,
    /// Maximum of `send`.
    pub send_max: u32,
}

/// Number of queues, current and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// Queues that receive, including combined ones.
    pub receive: u32,
    /// Maximum of `receive`.
    pub receive_max: u32,
    /// Whether they are set as `combined`, not as `rx`.
    pub is_combined: bool,
}

/// Ethernet flow control by pause frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Whether both ends negotiate it.
    pub negotiated: bool,
    /// Whether the card obeys received pause frames.
    pub receive: bool,
    /// Whether it sends pause frames when it is full.
    pub send: bool,
}

/// Handle of an interface.
#[derive(Debug)]
pub struct Card {
    socket: OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Card {
    /// Opens the interface `name`.
    ///
    /// Fails for an invalid name or if no socket can be opened.
    pub fn open(name: &str) -> Result<Self, SysError> {
        // One byte is needed for the terminating zero.
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.bytes().any(|byte| byte == 0) {
            return Err(SysError::Invalid { what: format!("{name:?} is not an interface name") });
        }
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .map_err(|e| SysError::Call { action: "open a socket to ask about cards", source: e.into() })?;
        let mut written = [0; libc::IFNAMSIZ];
        for (to, from) in written.iter_mut().zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        Ok(Self { socket, name: written })
    }

    /// Ring sizes. Fails if they cannot be read, as for loopback and many virtual cards.
    pub fn ring(&self) -> Result<Ring, SysError> {
        // struct ethtool_ringparam: rx_max, rx_mini_max, rx_jumbo_max, tx_max, rx, rx_mini, rx_jumbo, tx.
        let [receive_max, _, _, send_max, receive, _, _, send] = self.ask(GET_RING, "read ring sizes")?;
        Ok(Ring { receive, receive_max, send, send_max })
    }

    /// Queues. Fails if their number cannot be set.
    pub fn channels(&self) -> Result<Channels, SysError> {
        // struct ethtool_channels: max_rx, max_tx, max_other, max_combined, rx, tx, other, combined.
        let [rx_max, _, _, combined_max, rx, _, _, combined] =
            self.ask(GET_CHANNELS, "read the number of queues")?;
        Ok(match combined_max {
            0 => Channels { receive: rx, receive_max: rx_max, is_combined: false },
            most => Channels { receive: combined, receive_max: most, is_combined: true },
        })
    }

    /// Flow control. Fails if the card has none.
    pub fn pause(&self) -> Result<Pause, SysError> {
        // struct ethtool_pauseparam: autoneg, rx_pause, tx_pause.
        let [negotiated, receive, send] = self.ask(GET_PAUSE, "read flow control")?;
        Ok(Pause { negotiated: negotiated != 0, receive: receive != 0, send: send != 0 })
    }

    /// Whether the kernel joins received packets of one stream (GRO).
    pub fn gro(&self) -> Result<bool, SysError> {
        self.value(GET_GRO, "read generic receive offload").map(|value| value != 0)
    }

    /// Whether the card joins them (LRO).
    pub fn lro(&self) -> Result<bool, SysError> {
        self.value(GET_FLAGS, "read large receive offload").map(|flags| flags & FLAG_LRO != 0)
    }

    /// Whether sends are split into packets late (GSO).
    pub fn gso(&self) -> Result<bool, SysError> {
        self.value(GET_GSO, "read generic segmentation offload").map(|value| value != 0)
    }

    /// Whether the card splits TCP sends (TSO).
    pub fn tso(&self) -> Result<bool, SysError> {
        self.value(GET_TSO, "read TCP segmentation offload").map(|value| value != 0)
    }

    /// Whether the card verifies receive checksums.
    pub fn receive_checksum(&self) -> Result<bool, SysError> {
        self.value(GET_RECEIVE_CHECKSUM, "read receive checksum offload").map(|value| value != 0)
    }

    /// `struct ethtool_value`: a command and one number.
    fn value(&self, command: u32, action: &'static str) -> Result<u32, SysError> {
        self.ask(command, action).map(|[value]| value)
    }

    /// Runs a command that returns `N` 32-bit numbers after the command, as all of the above do.
    fn ask<const N: usize>(&self, command: u32, action: &'static str) -> Result<[u32; N], SysError> {
        /// Common layout of these structures of linux/ethtool.h.
        #[repr(C)]
        struct Question<const N: usize> {
            command: u32,
            answer: [u32; N],
        }
        let mut question = Question { command, answer: [0; N] };
        let mut request = libc::ifreq {
            ifr_name: self.name,
            ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut question).cast() },
        };
        // SAFETY: the request and the question that it points to live through the call. The kernel writes
        // at most the structure that belongs to the command, which is the command and `N` numbers.
        let answer = unsafe {
            libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request)
        };
        match answer {
            0 => Ok(question.answer),
            _ => Err(SysError::Call { action, source: std::io::Error::last_os_error() }),
        }
    }
}

#[cfg(test)]
#[path = "ethtool_tests.rs"]
mod tests;
