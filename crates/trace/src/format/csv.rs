//! Comma-separated traces of requests: MSR Cambridge, SPC and UMass, Alibaba.
//!
//! Each is a file of its own here, with what they share: a first line with names is taken when the names are
//! those that are known, in their order, and refused otherwise.
pub(super) mod alibaba;
pub(super) mod msr;
pub(super) mod spc;

use crate::error::Complaint;
use crate::text::{separated, shown};

/// Whether a first line has the names of the columns; an error when they are others.
#[cold]
fn is_names(line: &[u8], names: &[&str]) -> Result<bool, Complaint> {
    let (fields, count) = separated::<16>(line, b',');
    let fields = &fields[..count.min(16)];
    // Names have no digits first; the first column of each format is a number.
    let is_number = |field: &[u8]| field.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-');
    if fields.iter().any(|field| is_number(field)) {
        return Ok(false);
    }
    let is_known = |(field, name): (&&[u8], &&str)| field.eq_ignore_ascii_case(name.as_bytes());
    if count == names.len() && fields.iter().zip(names).all(is_known) {
        return Ok(true);
    }
    let what = format!("its columns are {}, where {} belong", shown(line), names.join(","));
    Err(Complaint::new(what)
        .help("keepup trace info --help lists the formats; --format says which one it is"))
}

/// A complaint about the number of columns.
#[cold]
fn columns(count: usize, names: &[&str]) -> Complaint {
    Complaint::new(format!("it has {count} columns, where {} belong: {}", names.len(), names.join(",")))
}
