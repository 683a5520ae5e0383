//! Sections of the files are kept apart.
use super::*;

#[test]
fn only_the_section_is_read() {
    let text = "[default]\naws_access_key_id = A\n# aws_secret_access_key = no\n\n[ other ]\nregion=x\n\
                aws_access_key_id=B=\n[third]\nregion = y\n";
    assert_eq!(section(text, "default"), BTreeMap::from([("aws_access_key_id", "A")]));
    assert_eq!(section(text, "other"), BTreeMap::from([("aws_access_key_id", "B="), ("region", "x")]));
    assert!(section(text, "none").is_empty());
}
