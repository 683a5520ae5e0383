//! Two records side by side: a fingerprint of what lasts, and the list of what differs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Environment;

/// An item in which two records differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// Where it stands, as in `volumes[0].disks.sda.scheduler`.
    pub item: String,
    /// What the first record says; `absent` if it lacks the item.
    pub first: String,
    /// What the second record says; `absent` if it lacks the item.
    pub second: String,
    /// Whether the item lasts, so that it is in the fingerprint.
    pub lasting: bool,
}

impl Environment {
    /// Sixteen hexadecimal digits that stay the same while the machine, its settings and the tool do: FNV-1a
    /// with 64 bits (Fowler, Noll, Vo) over one line `item=value` for each lasting item, sorted. Why an item
    /// could not be read does not count, only that it could not. No protection against forgery.
    pub fn fingerprint(&self) -> String {
        let items = self.items();
        let lasting = items.iter().filter(|(item, _)| lasts(item));
        let text: String = lasting.map(|(item, value)| format!("{item}={value}\n")).collect();
        format!("{:016x}", fnv1a(text.as_bytes()))
    }

    /// What differs between two records, sorted by item.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        differing(&self.items(), &other.items())
    }

    /// Every item of the record as text, by its place.
    fn items(&self) -> BTreeMap<String, String> {
        let mut items = BTreeMap::new();
        // The record holds nothing that JSON could refuse: text, numbers, lists, and maps with text as keys.
        let record = serde_json::to_value(self).unwrap_or_default();
        list(String::new(), &record, &mut items);
        items
    }
}

/// What differs between two records, or settings, as JSON has them, sorted by item: also between those that
/// an
/// older version wrote.
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

/// FNV-1a with 64 bits, by its authors' constants (draft-eastlake-fnv).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn text_of(items: &BTreeMap<String, String>, name: &str) -> String {
    items.get(name).map_or("absent", String::as_str).to_owned()
}

/// Whether an item stays the same from minute to minute.
fn lasts(item: &str) -> bool {
    let mut places = item.split('.');
    match (places.next(), places.next()) {
        (Some("moment"), _) => false,
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
