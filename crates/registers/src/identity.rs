//! Check of a device's identity register.
use keepup_sys::register::{Span, Width};

use super::error::RegisterError;
use super::method::Method;
use super::profile::Identity;
use super::target::Target;

impl Identity {
    /// Width; 32 bits if the value is invalid.
    pub fn width(self) -> Width {
        Width::of_bits(self.width).unwrap_or_default()
    }

    /// The register.
    pub(super) fn span(self) -> Span {
        Span { offset: self.offset, count: 1, width: self.width(), is_fifo: false }
    }

    /// Reads the register and compares its value. `method` must have registers.
    ///
    /// # Errors
    /// Another value, or a failed access.
    pub(super) fn check(self, target: &Target, method: &mut dyn Method) -> Result<(), RegisterError> {
        let mut values = Vec::new();
        method.values(&self.span(), &mut values).map_err(|source| RegisterError::Access {
            target: target.to_string(),
            method: method.name().into(),
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
                true => {
                    "the device does not respond: it is missing, in a low-power state or disabled \
                         (lspci -vv, dmesg)"
                }
                false => {
                    "this is another device or another register: check --identity OFFSET=VALUE or the profile"
                }
            }
            .into(),
        })
    }
}
