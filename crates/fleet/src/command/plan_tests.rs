//! Lists of commands that fit into orders.
use super::*;
use crate::link::ORDER_BYTES_MAX;

#[test]
fn every_command_is_in_one_list_within_the_limits() {
    let short = ["disk".to_owned(), "sweep".to_owned()];
    let long = ["x".repeat(ARGUMENT_BYTES_MAX - 1)];
    let mut commands: Vec<&[String]> = vec![&short[..]; 130];
    commands.extend([&long[..], &long[..], &short[..], &short[..]]);
    let found = batches(&commands);
    assert_eq!(found.concat(), (0..134).collect::<Vec<_>>());
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [64, 64, 2, 1, 1, 2]);
    assert!(batches(&[]).is_empty());
}

#[test]
fn the_longest_list_fits_into_an_order_whatever_its_characters() {
    // A control character is six bytes in JSON, and a quotation mark in JSON in JSON is four.
    let worst = vec!["\u{1}".repeat(ARGUMENT_BYTES_MAX - 1)];
    assert!(check_length(&worst).is_ok());
    let plan = crate::jobs::encode(crate::jobs::COMMAND, &CommandPlan::Run(worst)).unwrap();
    let message = serde_json::to_string(&plan).unwrap();
    assert!(message.len() < ORDER_BYTES_MAX / 2, "{}", message.len());
    let why = check_length(&["x".repeat(ARGUMENT_BYTES_MAX)]).unwrap_err();
    assert!(why.to_text().contains("limit 262144"), "{why:?}");
}
