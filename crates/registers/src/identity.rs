//! Whether who answers is who should.
use keepup_sys::register::{Span, Width};

use super::error::RegisterError;
use super::method::Method;
use super::profile::Identity;
use super::target::Target;

impl Identity {
    /// Its width; of 32 bits where it says none that there is.
    pub fn width(self) -> Width {
        Width::of_bits(self.width).unwrap_or_default()
    }

    /// The register.
    pub(super) fn span(self) -> Span {
        Span { offset: self.offset, count: 1, width: self.width(), is_fifo: false }
    }

    /// Reads it by a way that has registers.
    ///
    /// # Errors
    /// Another value, or an access that failed.
    pub(super) fn confirm(self, target: &Target, way: &mut dyn Method) -> Result<(), RegisterError> {
        let mut values = Vec::new();
        way.values(&self.span(), &mut values).map_err(|source| RegisterError::Access {
            target: target.to_string(),
            method: way.name().into(),
            source,
        })?;
        let found = values.first().copied().unwrap_or_default();
        if found == self.value {
            return Ok(());
        }
        let gone = found == self.width().all_ones();
        Err(RegisterError::Identity {
            target: target.to_string(),
            what: format!("the register at {:#x} reads {found:#x} instead of {:#x}", self.offset, self.value),
            hint: match gone {
                true => "nobody answers: the device is gone, asleep or not enabled (lspci -vv, dmesg)",
                false => "it is another device, or another register: --identity OFFSET=VALUE, or the profile",
            }
            .into(),
        })
    }
}
