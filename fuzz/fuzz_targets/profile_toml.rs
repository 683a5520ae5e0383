//! The text of a profile: refused with a message, or a valid profile whose own text reads back as the same.
#![no_main]

use keepup_plan::{Profile, ProfileError, builtin, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(profile) = parse(text, "fuzzed", &resolve) else { return };
    assert!(profile.validate().is_ok());
    let again: Profile = parse(&profile.to_toml(), "written", &resolve).expect("read back what was written");
    assert_eq!(again, profile);
});

/// Built-in profiles only: no file is read.
fn resolve(name: &str) -> Result<String, ProfileError> {
    builtin(name).map(|profile| profile.to_toml())
}
