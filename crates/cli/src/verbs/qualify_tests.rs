//! Flags of `qualify` that depend on one another.
use super::*;
use crate::exit::hint;

#[test]
fn an_endurance_is_for_all_volumes_or_for_each() {
    let each = |rated: &[u64], volumes| endurance_each(rated, volumes).unwrap();
    assert_eq!(each(&[], 3), Vec::<u64>::new());
    assert_eq!(each(&[600], 3), [600, 600, 600]);
    assert_eq!(each(&[600, 300], 2), [600, 300]);
    let refused = endurance_each(&[600, 300], 3).unwrap_err();
    assert_eq!(refused.to_string(), "cannot assign 2 endurance ratings to 3 volumes");
    assert_eq!(Exit::of(&refused), Exit::Usage);
    assert!(hint(&refused).unwrap().contains("--endurance once for all volumes"));
    assert_eq!(endurance("600TB").unwrap(), 600_000_000_000_000);
    assert!(endurance("0 TB").is_err());
}
