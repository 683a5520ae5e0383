//! Names of machines.
use serde_json::json;

use super::machine_name;

#[test]
fn a_machine_is_named_by_label_and_host() {
    assert_eq!(machine_name(&json!({ "host": "daq1", "label": "rack 3" })).unwrap(), "rack 3 (daq1)");
    assert_eq!(machine_name(&json!({ "host": "daq1" })).unwrap(), "daq1");
    assert_eq!(machine_name(&json!({ "label": "rack 3" })).unwrap(), "rack 3");
    for nothing in [json!(null), json!({}), json!({ "host": "", "label": 3 })] {
        assert_eq!(machine_name(&nothing), None);
    }
}
