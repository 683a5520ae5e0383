//! Check for static programs, which have no interpreter (elf(5), PT_INTERP).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
const PT_INTERP: u64 = 3;

/// Fails if the program has an interpreter, which loads shared libraries.
pub(super) fn refuse_dynamic(program: &Path) -> Result<()> {
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let types = segment_types(&bytes);
    let types = types.with_context(|| format!("{} is not a 64-bit ELF file", program.display()))?;
    let is_static = !types.contains(&PT_INTERP);
    ensure!(is_static, "{} requires shared libraries; link it statically", program.display());
    Ok(())
}

/// Types of all segments of a 64-bit little-endian ELF file, otherwise `None`.
fn segment_types(bytes: &[u8]) -> Option<Vec<u64>> {
    let at = |offset: usize, length: usize| {
        let field = bytes.get(offset..offset.checked_add(length)?)?;
        Some(field.iter().rev().fold(0u64, |value, byte| (value << 8) | u64::from(*byte)))
    };
    // e_phoff, e_phentsize and e_phnum.
    let (table, size, number) = (at(32, 8)?, at(54, 2)?, at(56, 2)?);
    let start = |index: u64| usize::try_from(table.checked_add(index * size)?).ok();
    bytes.starts_with(MAGIC).then(|| (0..number).map(|index| at(start(index)?, 4)).collect())?
}
