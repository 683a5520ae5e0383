//! Comparison of two records: a fingerprint of lasting items, and the list of differences.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Environment;

/// An item in which two records differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Path of the item, as in `volumes[0].disks.sda.scheduler`.
    pub item: String,
    /// Value in the first record; `absent` if missing.
    pub first: String,
    /// Value in the second record; `absent` if missing.
    pub second: String,
    /// Whether the item is lasting and thus part of the fingerprint.
    pub lasting: bool,
}

impl Environment {
    /// Sixteen hexadecimal digits that are constant for the same machine, settings and tool: 64-bit
    /// FNV-1a (Fowler, Noll, Vo) over one line `item=value` per lasting item, sorted. The reason
    /// for an unreadable item is not included. Not cryptographically secure.
    pub fn fingerprint(&self) -> String {
        let items = self.items();
        let lasting = items.iter().filter(|(item, _)| lasts(item));
        let text: String = lasting.map(|(item, value)| format!("{item}={value}\n")).collect();
        format!("{:016x}", fnv1a(text.as_bytes()))
    }

    /// Differences between two records, sorted by item.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        differing(&self.items(), &other.items())
    }

    /// Items of the record as text, by path.
    fn items(&self) -> BTreeMap<String, String> {
        let mut items = BTreeMap::new();
        // The record consists of JSON-compatible types.
        let record = serde_json::to_value(self).unwrap_or_default();
        list(String::new(), &record, &mut items);
        items
    }
}

/// Differences between two records or settings in JSON form, sorted by item; also works for older
/// versions.
pub fn differences(first: &Value, second: &Value) -> Vec<Difference> {
    let items = |value: &Value| {
        let mut items = BTreeMap::new();
        list(String::new(), value, &mut items);
        items
    };
    differing(&items(first), &items(second))
}

fn differing(first: &BTreeMap<String, String>, second: &BTreeMap<String, String>) -> Vec<Difference> {
    let names: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    let compare = |name: &String| Difference {
        item: name.clone(),
        first: text_of(first, name),
        second: text_of(second, name),
        lasting: lasts(name),
    };
    names.into_iter().map(compare).filter(|difference| difference.first != difference.second).collect()
}

/// 64-bit FNV-1a with its authors' constants (draft-eastlake-fnv).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn text_of(items: &BTreeMap<String, String>, name: &str) -> String {
    items.get(name).map_or("absent", String::as_str).to_owned()
}

/// Whether an item is lasting.
fn lasts(item: &str) -> bool {
    let mut places = item.split('.');
    match (places.next(), places.next()) {
        (Some("moment" | "host" | "label"), _) => false,
        (Some(place), Some("free" | "path")) => !place.starts_with("volumes["),
        _ => true,
    }
}

fn list(place: String, value: &Value, items: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    // The two forms of a reading.
                    "value" => list(place.clone(), field, items),
                    "not_readable" => {
                        items.insert(place.clone(), "not readable".to_owned());
                    }
                    name if place.is_empty() => list(name.to_owned(), field, items),
                    name => list(format!("{place}.{name}"), field, items),
                }
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                list(format!("{place}[{index}]"), element, items);
            }
        }
        Value::String(text) => {
            items.insert(place, text.clone());
        }
        Value::Null => {
            items.insert(place, "none".to_owned());
        }
        Value::Bool(_) | Value::Number(_) => {
            items.insert(place, value.to_string());
        }
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
