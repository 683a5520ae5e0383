//! What is read out of cargo's messages.

use super::*;

#[test]
fn the_program_is_where_cargo_put_it() {
    let messages = concat!(
        r#"{"reason":"compiler-artifact","target":{"name":"keepup_plan"},"executable":null}"#,
        "\nnot json\n",
        r#"{"reason":"compiler-artifact","target":{"name":"keepup"},"executable":"/t/release/keepup"}"#,
        "\n",
        r#"{"reason":"build-finished","success":true}"#,
    );
    assert_eq!(executable(messages), Some(PathBuf::from("/t/release/keepup")));
    assert_eq!(executable(""), None);
}
