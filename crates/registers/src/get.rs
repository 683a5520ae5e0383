//! Reads registers once, and gives what they hold.
use std::path::Path;

use keepup_sys::register::Span;

use super::error::RegisterError;
use super::method::{named, open};
use super::profile::TargetProfile;
use super::target::Target;

/// What is read, and how.
#[derive(Clone, Copy, Debug)]
pub struct Read<'a> {
    /// The registers.
    pub span: Span,
    /// By which way; the target's first without.
    pub method: Option<&'a str>,
    /// What is known of the device.
    pub profile: Option<&'a TargetProfile>,
    /// Places of registers that reading changes, and that are read all the same.
    pub read_to_clear: &'a [u64],
}

/// The values of a target's registers. `root` is `/` in earnest.
///
/// # Errors
/// No such target or way, registers beyond it, reads that would change one, or an access that failed.
pub fn get(target: &Target, root: &Path, read: &Read<'_>) -> Result<Vec<u64>, RegisterError> {
    let span = &read.span;
    let wrong = |what: String, hint: String| RegisterError::Span { target: target.to_string(), what, hint };
    let mut ways = named(target, open(target, root, read.profile)?, read.method.as_slice())?;
    let Some(way) = ways.first_mut() else {
        return Err(wrong("it has no way of being read".into(), "another target".into()));
    };
    let most = super::test::DEPTH_MAX;
    if span.count > most {
        return Err(wrong(format!("{} registers at a time: more than {most}", span.count), "--count".into()));
    }
    let bytes = way.bytes();
    span.check(bytes).map_err(|what| wrong(what, format!("it has {bytes} bytes; --offset and --count")))?;
    if let Some(profile) = read.profile.filter(|_| way.has_registers()) {
        profile.spare(target, span, read.read_to_clear)?;
    }
    let mut values = Vec::new();
    let method = way.name().to_owned();
    let failed = |source| RegisterError::Access { target: target.to_string(), method, source };
    way.values(span, &mut values).map_err(failed)?;
    Ok(values)
}

#[cfg(test)]
#[path = "get_tests.rs"]
mod tests;
