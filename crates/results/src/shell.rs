//! Commands for a shell, to be pasted by the user.

/// Quotes a command argument if a shell requires it.
#[must_use]
pub fn quoted(argument: &str) -> String {
    let is_plain = argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c));
    match is_plain && !argument.is_empty() {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
