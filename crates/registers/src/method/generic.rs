//! The generic access function, as `register get` calls it.
use keepup_sys::register::Span;

use super::{DEPTH_MAX, Method, RegisterError};
use crate::profile::TargetProfile;
use crate::target::Target;

/// What may be read from a target.
#[derive(Clone, Copy)]
pub(crate) struct ReadPermit<'a> {
    pub(crate) target: &'a Target,
    /// Device profile.
    pub(crate) profile: Option<&'a TargetProfile>,
    /// Offsets of registers to read although reading changes them.
    pub(crate) read_to_clear: &'a [u64],
}

impl ReadPermit<'_> {
    /// Reads registers by a method into `values`, after checking them against target and profile.
    ///
    /// # Errors
    /// Registers beyond the target, a read that would change a register, or a failed access.
    pub(crate) fn read(
        &self,
        method: &mut dyn Method,
        span: &Span,
        values: &mut Vec<u64>,
    ) -> Result<(), RegisterError> {
        let target = || self.target.to_string();
        if span.count > DEPTH_MAX {
            let what = format!("{} registers exceed the maximum of {DEPTH_MAX}", span.count);
            let hint = "choose a smaller --count".into();
            return Err(RegisterError::Span { target: target(), what, hint });
        }
        let bytes = method.bytes();
        span.check(bytes).map_err(|what| RegisterError::Span {
            target: target(),
            what,
            hint: format!("choose --offset and --count within its {bytes} bytes"),
        })?;
        if let Some(profile) = self.profile.filter(|_| method.has_registers()) {
            profile.check_read(self.target, span, self.read_to_clear)?;
        }
        method.values(span, values).map_err(|source| RegisterError::Access {
            target: target(),
            method: method.name().to_owned(),
            source,
        })
    }
}

/// Reads registers of any width by another method, after checking them against target and profile, into a
/// list. The other methods are loops for one width, checked once.
pub(crate) struct Generic {
    pub(crate) target: Target,
    pub(crate) method: Box<dyn Method>,
    pub(crate) profile: Option<TargetProfile>,
    pub(crate) read_to_clear: Vec<u64>,
    pub(crate) last: Vec<u64>,
}

impl Method for Generic {
    fn name(&self) -> &'static str {
        "generic"
    }

    fn bytes(&self) -> u64 {
        self.method.bytes()
    }

    fn has_registers(&self) -> bool {
        self.method.has_registers()
    }

    fn read(&mut self, span: &Span) -> std::io::Result<()> {
        let mut values = std::mem::take(&mut self.last);
        let read = self.values(span, &mut values);
        self.last = values;
        read
    }

    fn values(&mut self, span: &Span, values: &mut Vec<u64>) -> std::io::Result<()> {
        let (profile, read_to_clear) = (self.profile.as_ref(), self.read_to_clear.as_slice());
        let permit = ReadPermit { target: &self.target, profile, read_to_clear };
        permit.read(self.method.as_mut(), span, values).map_err(std::io::Error::other)
    }
}
