//! Names of groups.
use super::*;

#[test]
fn names_that_zarr_cannot_read_are_replaced() {
    let names = [
        ("camera", "camera"),
        ("back\\slash", "stream-1"),
        ("*", "stream-2"),
        ("a?b", "stream-3"),
        ("[a]", "stream-4"),
        (".zgroup", "stream-5"),
        ("__init", "stream-6"),
        ("100% @home #1 {x}", "100% @home #1 {x}"),
    ];
    let found = group_names((0..).zip(names.map(|(name, _)| name)));
    assert_eq!(found.into_values().collect::<Vec<_>>(), names.map(|(_, wanted)| wanted));
}
