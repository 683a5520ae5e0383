//! Writes one register that the target's profile names, and reads it back.
use std::path::Path;

use keepup_sys::register::{Span, Width};

use super::error::RegisterError;
use super::method::{Method, Store, open};
use super::profile::TargetProfile;
use super::target::Target;

/// A register that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// What it read as before; `None` where reading changes it.
    pub before: Option<u64>,
    /// What it read as afterwards; `None` where reading changes it.
    pub after: Option<u64>,
}

/// Writes `value` to the register of `width` at `offset`. `root` is `/` in earnest.
///
/// # Errors
/// A register that the profile does not name, a target that is not what the profile is for, that has no way
/// of writing, or whose identity is another.
pub fn set(
    target: &Target,
    root: &Path,
    profile: &TargetProfile,
    (offset, width): (u64, Width),
    value: u64,
) -> Result<Written, RegisterError> {
    profile.allow(target, offset, width)?;
    let mut ways = open(target, root, Some(profile))?;
    let mut stores = writing(target, &ways, Store { offset, value }, width)?;
    let (Some(way), Some(store)) = (ways.iter_mut().find(|way| way.has_registers()), stores.first_mut())
    else {
        return Err(cannot_write(target));
    };
    let name = way.name();
    let failed = |source| RegisterError::Access { target: target.to_string(), method: name.into(), source };
    let mut values = Vec::new();
    let span = Span { offset, count: 1, width, is_fifo: false };
    let is_spared = profile.cleared_by(&span, &[]).is_some();
    let mut look = |way: &mut dyn Method| match is_spared {
        true => Ok(None),
        false => way.values(&span, &mut values).map(|()| values.first().copied()),
    };
    let before = look(way.as_mut()).map_err(failed)?;
    store.read(&span).map_err(failed)?;
    let after = look(way.as_mut()).map_err(failed)?;
    Ok(Written { before, after })
}

/// The ways of writing to a register that the profile lets be written, by the first of `ways` that has any.
pub(super) fn writing(
    target: &Target,
    ways: &[Box<dyn Method>],
    store: Store,
    width: Width,
) -> Result<Vec<Box<dyn Method>>, RegisterError> {
    let wrong = |what: String, hint: &str| RegisterError::Span {
        target: target.to_string(),
        what,
        hint: hint.into(),
    };
    if store.value > width.all_ones() {
        let what = format!("{:#x} has more than the {} bits of the register", store.value, width.bits());
        return Err(wrong(what, "a shorter value, or --width"));
    }
    for way in ways {
        let found = way.writing(store, width);
        let found = found.map_err(|why| wrong(why.to_string(), "a register of the target, and --width"))?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(cannot_write(target))
}

fn cannot_write(target: &Target) -> RegisterError {
    RegisterError::Span {
        target: target.to_string(),
        what: "none of the ways that are asked for can write a register".into(),
        hint: "a BAR that can be mapped is written by --method mmap: pci:, vfio:, uio:".into(),
    }
}

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
