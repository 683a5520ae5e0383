//! Writes one register that the target's profile lists as writable, and reads it back.
use std::path::Path;

use keepup_sys::register::{Span, Width};

use super::error::RegisterError;
use super::method::{Method, RegisterWrite, open};
use super::profile::TargetProfile;
use super::target::Target;

/// Values of a register before and after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOutcome {
    /// Value before the write; `None` if reading changes the register.
    pub before: Option<u64>,
    /// Value after the write; `None` if reading changes the register.
    pub after: Option<u64>,
}

/// Writes `value` to the register of `width` at `offset`. `root` is `/` except in tests.
///
/// # Errors
/// A register that the profile does not list as writable, another device than that of the profile, or a
/// target that cannot be written.
pub fn set(
    target: &Target,
    root: &Path,
    profile: &TargetProfile,
    (offset, width): (u64, Width),
    value: u64,
) -> Result<WriteOutcome, RegisterError> {
    profile.check_write(target, offset, width)?;
    let mut methods = open(target, root, Some(profile))?;
    let mut stores = write_methods(target, &methods, RegisterWrite { offset, value }, width)?;
    let with_registers = methods.iter_mut().find(|method| method.has_registers());
    let (Some(method), Some(store)) = (with_registers, stores.first_mut()) else {
        return Err(cannot_write(target));
    };
    let name = method.name();
    let failed = |source| RegisterError::Access { target: target.to_string(), method: name.into(), source };
    let mut values = Vec::new();
    let span = Span { offset, count: 1, width, is_fifo: false };
    let is_read_to_clear = profile.first_cleared(&span, &[]).is_some();
    let mut value = |method: &mut dyn Method| match is_read_to_clear {
        true => Ok(None),
        false => method.values(&span, &mut values).map(|()| values.first().copied()),
    };
    let before = value(method.as_mut()).map_err(failed)?;
    store.read(&span).map_err(failed)?;
    let after = value(method.as_mut()).map_err(failed)?;
    Ok(WriteOutcome { before, after })
}

/// The write methods of the first of `methods` that has any. The caller checks the profile.
pub(super) fn write_methods(
    target: &Target,
    methods: &[Box<dyn Method>],
    write: RegisterWrite,
    width: Width,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let wrong = |what: String, hint: &str| RegisterError::Span {
        target: target.to_string(),
        what,
        hint: hint.into(),
    };
    if write.value > width.all_ones() {
        let what = format!("{:#x} does not fit into the {} bits of the register", write.value, width.bits());
        return Err(wrong(what, "choose a smaller value or another --width"));
    }
    for method in methods {
        let found = method.write_methods(write, width);
        let found = found
            .map_err(|why| wrong(why.to_string(), "choose a register of the target, and its --width"))?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(cannot_write(target))
}

fn cannot_write(target: &Target) -> RegisterError {
    RegisterError::Span {
        target: target.to_string(),
        what: "none of the selected methods can write registers".into(),
        hint: "use --method mmap with a BAR that can be mapped: pci:, vfio:, uio:".into(),
    }
}

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
