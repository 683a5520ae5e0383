//! Compares a store's answer about a part with the part.
//!
//! S3 returns the CRC-64/NVME that it computed of a part, other stores only an ETag, which is often the MD5.
//! The CRC is compared where there is one: it costs a fiftieth of an MD5. Invariant: a part counts as
//! confirmed only if the store has returned a checksum that this process computed of the same bytes.
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm::Crc64Nvme;
use keepup_recording::archived::PartChecks;
use md5::Md5;
use sha2::{Digest as _, Sha256};

use crate::inventory::hex;

/// Checks of a part that was sent without any confirmation.
pub(crate) fn no_checks() -> PartChecks {
    PartChecks { crc64: String::new(), has_crc64: false, has_md5: false, has_sha256: false }
}

/// Whether the part that was sent had these bytes; unknown parts have not.
pub(crate) fn is_part(checks: &PartChecks, part: &[u8]) -> bool {
    checks.crc64 == hex(&crc64(part))
}

/// An ETag without the quotation marks.
pub(crate) fn unquoted(etag: &str) -> &str {
    etag.trim().trim_start_matches("&quot;").trim_end_matches("&quot;").trim_matches('"')
}

/// Compares a store's name for part `index` with the part: an ETag, or an XML element with the ETag and
/// checksums.
pub(crate) fn checks(content: &str, index: usize, part: &[u8]) -> PartChecks {
    let crc = crc64(part);
    let has_crc64 = tag(content, "checksum_crc64nvme").is_some_and(|found| found == STANDARD.encode(crc));
    // The first part shows whether the store's ETags are MD5s, which confirm the order of the parts.
    let has_md5 = (!has_crc64 || index == 0) && etag(content) == hex(&Md5::digest(part));
    let has_sha256 = !has_crc64
        && !has_md5
        && tag(content, "checksum_sha256")
            .is_some_and(|found| found == STANDARD.encode(Sha256::digest(part)));
    PartChecks { crc64: hex(&crc), has_crc64, has_md5, has_sha256 }
}

/// Whether the store has confirmed all parts, and their order where its ETag or a checksum of the whole
/// object shows that. `is_whole_equal`: whether that checksum is the one of the file, if there is one.
pub(crate) fn is_confirmed(
    done: &BTreeMap<usize, (String, PartChecks)>,
    found: Option<&str>,
    is_whole_equal: Option<bool>,
) -> bool {
    let confirmed = |checks: &PartChecks| checks.has_crc64 || checks.has_md5 || checks.has_sha256;
    let has_md5_etags = done.values().any(|(_, checks)| checks.has_md5);
    let is_in_order = is_whole_equal.unwrap_or_else(|| {
        !has_md5_etags || found.is_some_and(|found| Some(unquoted(found)) == whole_etag(done).as_deref())
    });
    done.values().all(|(_, checks)| confirmed(checks)) && is_in_order
}

/// ETag of an object whose parts have MD5s as ETags, as S3 forms it: MD5 of the MD5s, number of parts.
fn whole_etag(done: &BTreeMap<usize, (String, PartChecks)>) -> Option<String> {
    let mut all = Md5::new();
    for (content, _) in done.values() {
        let digits = etag(content);
        let bytes = digits.is_ascii().then(|| digits.as_bytes().chunks(2))?;
        for pair in bytes {
            all.update([u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?]);
        }
    }
    Some(format!("{}-{}", hex(&all.finalize()), done.len()))
}

/// CRC-64/NVME, in the byte order of S3.
fn crc64(part: &[u8]) -> [u8; 8] {
    crc_fast::checksum(Crc64Nvme, part).to_be_bytes()
}

fn etag(content: &str) -> &str {
    unquoted(tag(content, "e_tag").unwrap_or(content))
}

/// Text of an element of the client library's name for a part.
fn tag<'a>(content: &'a str, name: &str) -> Option<&'a str> {
    let rest = content.split_once(&format!("<{name}>"))?.1;
    Some(rest.split_once("</")?.0)
}

#[cfg(test)]
#[path = "part_checks_tests.rs"]
mod tests;
