//! Reads registers once and returns their values.
use std::path::Path;

use keepup_sys::register::Span;

use super::error::RegisterError;
use super::method::{ReadPermit, open, select};
use super::profile::TargetProfile;
use super::target::Target;

/// Parameters of a read.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest<'a> {
    /// Registers.
    pub span: Span,
    /// Name of the access method; the target's first by default.
    pub method: Option<&'a str>,
    /// Device profile.
    pub profile: Option<&'a TargetProfile>,
    /// Offsets of registers to read although reading changes them.
    pub read_to_clear: &'a [u64],
}

/// Returns the values of a target's registers. `root` is `/` except in tests.
///
/// # Errors
/// No such target or method, registers beyond the target, a read that would change a register, or a failed
/// access.
pub fn get(target: &Target, root: &Path, read: &ReadRequest<'_>) -> Result<Vec<u64>, RegisterError> {
    let mut methods = select(target, open(target, root, read.profile)?, read.method.as_slice())?;
    let Some(method) = methods.first_mut() else {
        return Err(RegisterError::Span {
            target: target.to_string(),
            what: "it has no access method".into(),
            hint: "choose another target".into(),
        });
    };
    let mut values = Vec::new();
    let permit = ReadPermit { target, profile: read.profile, read_to_clear: read.read_to_clear };
    permit.read(method.as_mut(), &read.span, &mut values)?;
    Ok(values)
}

#[cfg(test)]
#[path = "get_tests.rs"]
mod tests;
