//! Reads registers once and returns their values.
use std::path::Path;

use keepup_sys::register::Span;

use super::error::RegisterError;
use super::method::{open, select};
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
    let span = &read.span;
    let wrong = |what: String, hint: String| RegisterError::Span { target: target.to_string(), what, hint };
    let mut methods = select(target, open(target, root, read.profile)?, read.method.as_slice())?;
    let Some(method) = methods.first_mut() else {
        return Err(wrong("it has no access method".into(), "choose another target".into()));
    };
    let most = super::test::DEPTH_MAX;
    if span.count > most {
        let what = format!("{} registers exceed the maximum of {most}", span.count);
        return Err(wrong(what, "choose a smaller --count".into()));
    }
    let bytes = method.bytes();
    let hint = || format!("choose --offset and --count within its {bytes} bytes");
    span.check(bytes).map_err(|what| wrong(what, hint()))?;
    if let Some(profile) = read.profile.filter(|_| method.has_registers()) {
        profile.check_read(target, span, read.read_to_clear)?;
    }
    let mut values = Vec::new();
    let name = method.name().to_owned();
    let failed = |source| RegisterError::Access { target: target.to_string(), method: name, source };
    method.values(span, &mut values).map_err(failed)?;
    Ok(values)
}

#[cfg(test)]
#[path = "get_tests.rs"]
mod tests;
