//! Conversion of TOML settings to command arguments.
use keepup_error::Cause;
use toml::{Table, Value};

use super::{Wrong, wrong};
use crate::plan::Settings;

/// Flags that the campaign sets itself, or that would prevent a measurement.
const RESERVED: [&str; 5] = ["out", "json", "dry-run", "help", "version"];

/// All settings of a table.
pub(super) fn settings_of(table: &Table, place: &str) -> Result<Settings, Wrong> {
    let mut settings = Settings::new();
    for (written, value) in table {
        let place = format!("{place}.{written}");
        let key = checked_key(written).map_err(|reason| wrong(&place, reason))?;
        let Some(values) = values_of(&key, value).map_err(|reason| wrong(&place, reason))? else { continue };
        if settings.insert(key.clone(), values).is_some() {
            return Err(wrong(place, format!("--{key} is set twice")));
        }
    }
    Ok(settings)
}

/// Flag name, with `-` for `_`.
pub(super) fn checked_key(written: &str) -> Result<String, Cause> {
    let key = written.replace('_', "-");
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if key.is_empty() || key.starts_with('-') || !key.chars().all(fits) {
        return Err(Cause::new(format!("--{written} is not a valid flag"))
            .with_hint("label the values: { label = \"...\", flag = \"...\" }"));
    }
    if key == "token" {
        return Err(Cause::new("a token must not be stored in a campaign file")
            .with_hint("use token-file = \"FILE\" or the environment variable KEEPUP_NET_TOKEN"));
    }
    match RESERVED.contains(&key.as_str()) {
        true => Err(format!("--{key} cannot be set: the campaign sets it").into()),
        false => Ok(key),
    }
}

/// Values of a key, none if the flag is omitted.
pub(super) fn values_of(key: &str, value: &Value) -> Result<Option<Vec<String>>, String> {
    match (key, value) {
        ("verb", Value::String(words)) => {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            match words.iter().any(|word| word.starts_with('-')) || words.is_empty() {
                true => Err("must be the words of a command, such as \"disk testdisk\"".to_owned()),
                false => Ok(Some(words)),
            }
        }
        ("verb", _) => Err("must be the words of a command, such as \"disk testdisk\"".to_owned()),
        ("host", Value::String(name)) if !name.is_empty() => Ok(Some(vec![name.clone()])),
        ("host", _) => Err("must be the name of one host, such as \"daq1\"".to_owned()),
        (_, Value::Array(parts)) if parts.is_empty() => Err("must not be empty".to_owned()),
        (_, Value::Array(parts)) => parts.iter().map(text_of).collect::<Result<_, _>>().map(Some),
        ("args", scalar) => text_of(scalar).map(|text| Some(vec![text])),
        (_, Value::Boolean(true)) => Ok(Some(Vec::new())),
        (_, Value::Boolean(false)) => Ok(None),
        (_, scalar) => text_of(scalar).map(|text| Some(vec![text])),
    }
}

/// A single value as text.
pub(super) fn text_of(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if text.contains('\0') => Err("must not contain a zero byte".to_owned()),
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        other => Err(format!("must not be a {}", other.type_str())),
    }
}
