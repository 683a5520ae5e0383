//! What errors say, and where they point.
use super::*;

#[test]
fn a_fault_points_to_its_key_or_to_the_table_around_it() {
    let text = "name = \"m\"\n\n[path.write]\nabout = \"x\"\n\n[[path.write.stage]]\non = \"y\"\n";
    for (key, line) in [("path.write.about", 4), ("path.write.stage.1.on", 6), ("path.gone", 3)] {
        let message = Fault::new(key, "it is bad").placed(text, "m.toml").to_string();
        assert_eq!(message, format!("m.toml:{line}: {key}: it is bad"));
    }
    assert_eq!(Fault::new("gone", "bad").placed(text, "m.toml").to_string(), "m.toml: gone: bad");
}

#[test]
fn an_unknown_name_comes_with_close_ones() {
    let error = ModelError::unknown("part", "pci-33", ["pci-32-33", "fc-1g"].into_iter());
    assert_eq!(
        Cause::of(&error).to_text(),
        "cannot find part \"pci-33\": no such part; similar: pci-32-33\n\
         hint: list the parts with keepup predict parts"
    );
}
