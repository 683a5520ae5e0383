//! Flags of `qualify` that depend on one another.
use clap::Parser as _;

use super::*;
use crate::exit::hint;
use crate::output::hint_of_flags;

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

#[test]
fn a_soak_that_is_too_short_is_refused_at_the_flag() {
    let flags = |soak: &'static str| crate::Cli::try_parse_from(["keepup", "qualify", "csl", "--soak", soak]);
    assert!(flags("2s").is_ok() && flags("10 m").is_ok());
    let Err(refused) = flags("0s") else { panic!("0 s is no soak") };
    assert!(refused.to_string().contains("cannot soak for 0 s: at least 2 s"), "{refused}");
    assert!(hint_of_flags(&refused).unwrap().contains("--soak '30 s'"));
}
