//! Comma-separated traces: MSR Cambridge, SPC and UMass, Alibaba.
//!
//! A first line with column names is accepted if the names and their order are as expected.
pub(super) mod alibaba;
pub(super) mod msr;
pub(super) mod spc;

use crate::error::ParseError;
use crate::text::{separated, shown};

/// Whether a first line has the expected column names; an error if it has others.
#[cold]
fn is_names(line: &[u8], names: &[&str]) -> Result<bool, ParseError> {
    let (fields, count) = separated::<16>(line, b',');
    let fields = &fields[..count.min(16)];
    // Column names do not start with a digit; the first column of each format is a number.
    let is_number = |field: &[u8]| field.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-');
    if fields.iter().any(|field| is_number(field)) {
        return Ok(false);
    }
    let is_known = |(field, name): (&&[u8], &&str)| field.eq_ignore_ascii_case(name.as_bytes());
    if count == names.len() && fields.iter().zip(names).all(is_known) {
        return Ok(true);
    }
    let what = format!("its columns are {} instead of {}", shown(line), names.join(","));
    Err(ParseError::new(what).help("choose the format with --format; see keepup trace info --help"))
}

/// An error for a wrong number of columns.
#[cold]
fn columns(count: usize, names: &[&str]) -> ParseError {
    ParseError::new(format!("it has {count} columns instead of {}: {}", names.len(), names.join(",")))
}
