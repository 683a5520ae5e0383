//! Units of published figures and their conversion to base units.
use serde::{Deserialize, Serialize};

/// Unit. MB is 10^6 bytes and MiB is 2^20, whatever the paper prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PaperUnit {
    /// 10^6 bytes per second.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// 2^20 bytes per second.
    #[serde(rename = "MiB/s")]
    MebibytesPerSecond,
    /// 10^9 bytes per second.
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    /// 10^6 bits per second.
    #[serde(rename = "Mbit/s")]
    MegabitsPerSecond,
    /// 10^9 bits per second.
    #[serde(rename = "Gbit/s")]
    GigabitsPerSecond,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// 2^20 bytes.
    #[serde(rename = "MiB")]
    Mebibytes,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Per cent.
    #[serde(rename = "%")]
    Percent,
    /// Ratio.
    #[serde(rename = "times")]
    Times,
    /// Transferred words.
    #[serde(rename = "words")]
    Words,
    /// Lanes of PCI Express.
    #[serde(rename = "lanes")]
    Lanes,
    /// CPU cycles per byte.
    #[serde(rename = "cycles/B")]
    CyclesPerByte,
    /// Count of what the quantity names.
    #[serde(rename = "items")]
    Items,
}

impl PaperUnit {
    /// Unit text.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::MegabytesPerSecond => "MB/s",
            Self::MebibytesPerSecond => "MiB/s",
            Self::GigabytesPerSecond => "GB/s",
            Self::MegabitsPerSecond => "Mbit/s",
            Self::GigabitsPerSecond => "Gbit/s",
            Self::Bytes => "B",
            Self::Mebibytes => "MiB",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Percent => "%",
            Self::Times => "times",
            Self::Words => "words",
            Self::Lanes => "lanes",
            Self::CyclesPerByte => "cycles/B",
            Self::Items => "",
        }
    }

    /// Base unit: B/s for rates, B for sizes, s for times; otherwise the unit itself.
    #[must_use]
    pub fn base(self) -> &'static str {
        match self {
            Self::MegabytesPerSecond
            | Self::MebibytesPerSecond
            | Self::GigabytesPerSecond
            | Self::MegabitsPerSecond
            | Self::GigabitsPerSecond => "B/s",
            Self::Bytes | Self::Mebibytes => "B",
            Self::Microseconds | Self::Milliseconds => "s",
            other => other.text(),
        }
    }

    /// Converts `value` to the [`base`](Self::base) unit.
    #[must_use]
    pub fn in_base(self, value: f64) -> f64 {
        value
            * match self {
                Self::MegabytesPerSecond => 1e6,
                Self::MebibytesPerSecond | Self::Mebibytes => 1_048_576.0,
                Self::GigabytesPerSecond => 1e9,
                Self::MegabitsPerSecond => 1e6 / 8.0,
                Self::GigabitsPerSecond => 1e9 / 8.0,
                Self::Microseconds => 1e-6,
                Self::Milliseconds => 1e-3,
                _ => 1.0,
            }
    }

    /// Converts `value` to `other`, `None` if incompatible.
    #[must_use]
    pub fn convert(self, value: f64, other: Self) -> Option<f64> {
        if self == other {
            // Without rounding.
            return Some(value);
        }
        (self.base() == other.base()).then(|| self.in_base(value) / other.in_base(1.0))
    }
}
