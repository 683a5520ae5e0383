//! Collapsed records of any structure: one row for each value, named by its path.

use maud::{Markup, html};
use serde_json::Value;

/// Most rows shown. A typical record has some hundred.
const ROWS_MAX: usize = 2000;

/// Renders a collapsed record.
pub(super) fn folded(title: &str, record: &Value) -> Markup {
    let mut rows = Vec::new();
    collect("", record, &mut rows);
    html! {
        section.record { details {
            summary { (title) }
            div.wide { table { tbody {
                @for (path, text) in &rows { tr { td { (path) } td { (text) } } }
            } } }
        } }
    }
}

fn collect(path: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    if rows.len() >= ROWS_MAX {
        return;
    }
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path} / {name}") };
    match value {
        Value::Object(fields) => match reading(fields) {
            Some(Ok(value)) => collect(path, value, rows),
            Some(Err(why)) => rows.push((path.to_owned(), format!("not readable: {why}"))),
            None => fields.iter().for_each(|(name, field)| collect(&below(&words(name)), field, rows)),
        },
        Value::Array(entries) if entries.iter().any(|entry| entry.is_object() || entry.is_array()) => {
            (1..).zip(entries).for_each(|(number, entry): (usize, _)| {
                collect(&below(&number.to_string()), entry, rows);
            });
        }
        Value::Array(entries) => {
            let entries: Vec<String> = entries.iter().map(plain).collect();
            rows.push((path.to_owned(), entries.join(", ")));
        }
        other => rows.push((path.to_owned(), plain(other))),
    }
}

/// Value of an environment reading, or why it could not be read.
fn reading(fields: &serde_json::Map<String, Value>) -> Option<Result<&Value, &str>> {
    if fields.len() != 1 {
        return None;
    }
    let value = fields.get("value").map(Ok);
    value.or_else(|| fields.get("not_readable").and_then(Value::as_str).map(Err))
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
