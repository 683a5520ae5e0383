//! The text of a machine, and of settings: refused with a message, or a machine that reads back as the same
//! and whose paths all have a rate or say why not.
#![no_main]

use keepup_model::{Machine, solve};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // The first line is a setting, the rest a machine.
    let (setting, text) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(mut machine) = Machine::parse(text, "fuzzed") else { return };
    let written = machine.to_toml().expect("written down");
    assert_eq!(Machine::parse(&written, "again").expect("read back"), machine);
    let _ = machine.with(setting);
    for path in machine.path.keys() {
        if let Ok(system) = machine.system(path, Some(1e6), &mut |figure| figure.value) {
            assert!(!solve(&system).bytes_per_second.is_nan());
        }
    }
});
