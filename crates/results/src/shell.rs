//! Commands for a shell, to be pasted by the user.
use crate::printable::is_printable;

/// Quotes a command argument if a shell requires it. Characters that are not printable become escapes of
/// `printf`, so that the command is the same after output has been sanitized.
#[must_use]
pub fn quoted(argument: &str) -> String {
    let is_plain = argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c));
    if is_plain && !argument.is_empty() {
        argument.to_owned()
    } else if argument.chars().all(is_printable) {
        format!("'{}'", argument.replace('\'', "'\\''"))
    } else if argument.ends_with('\n') {
        // A substitution loses line breaks at its end. Shells of POSIX 2024 know this form, dash does not.
        format!("$'{}'", argument.chars().map(|c| escaped(c).replace("%%", "%")).collect::<String>())
    } else {
        format!("\"$(printf '{}')\"", argument.chars().map(escaped).collect::<String>())
    }
}

/// A character in a format of `printf` between apostrophes.
fn escaped(c: char) -> String {
    let octal = |byte: &u8| format!("\\{byte:03o}");
    match c {
        // At the start, a hyphen would be an option.
        '\\' | '\'' | '-' => octal(&(c as u8)),
        '%' => "%%".to_owned(),
        c if is_printable(c) => c.to_string(),
        c => c.encode_utf8(&mut [0; 4]).as_bytes().iter().map(octal).collect(),
    }
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
