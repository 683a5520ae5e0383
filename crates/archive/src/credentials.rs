//! Credentials of S3 from the files `~/.aws/credentials` and `~/.aws/config`, which the client library does
//! not read.
use std::collections::BTreeMap;
use std::path::PathBuf;

use object_store::aws::AmazonS3Builder;

/// Longest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Enters what the files say about the profile of `AWS_PROFILE`, or `default`.
pub(crate) fn from_files(mut builder: AmazonS3Builder) -> AmazonS3Builder {
    let profile = std::env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
    let text = |variable: &str, name: &str| {
        let named = std::env::var_os(variable).map(PathBuf::from);
        let path =
            named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".aws").join(name)))?;
        let is_small = std::fs::metadata(&path).is_ok_and(|meta| meta.len() <= FILE_BYTES_MAX);
        is_small.then(|| std::fs::read_to_string(&path).ok())?
    };
    let config = text("AWS_CONFIG_FILE", "config").unwrap_or_default();
    let mut found = section(&config, &format!("profile {profile}"));
    found.extend(section(&config, &profile));
    let credentials = text("AWS_SHARED_CREDENTIALS_FILE", "credentials").unwrap_or_default();
    found.extend(section(&credentials, &profile));
    if let (Some(id), Some(secret)) = (found.get("aws_access_key_id"), found.get("aws_secret_access_key")) {
        builder = builder.with_access_key_id(*id).with_secret_access_key(*secret);
        if let Some(token) = found.get("aws_session_token") {
            builder = builder.with_token(*token);
        }
    }
    let is_set = |name: &str| std::env::var_os(name).is_some();
    match found.get("region") {
        Some(region) if !is_set("AWS_REGION") && !is_set("AWS_DEFAULT_REGION") => {
            builder.with_region(*region)
        }
        _ => builder,
    }
}

/// Keys of a section of an INI file.
fn section<'a>(text: &'a str, name: &str) -> BTreeMap<&'a str, &'a str> {
    let mut is_wanted = false;
    let mut found = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(title) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_wanted = title.trim() == name;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_wanted) {
            found.insert(key.trim(), value.trim());
        }
    }
    found
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
