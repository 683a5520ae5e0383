//! blkreplay's load files, with the text before the columns.
use crate::trace::tests::{names, read, refused, short};
use crate::{Flags, Format, Level, Operation};

const HEAD: &str = "Copyright of somebody; all rights granted\n\n####\n\
    start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n";

#[test]
fn requests_follow_the_names_of_the_columns() {
    let (records, trace) = read(format!(
        "{HEAD}   0.053785735 ; 1447473088 ;   16 ; R ; 0.0 ; 0.0\n\
         0.153789458 ;  8 ; 1 ; RA ; 0.0 ; 0.0\n\n# end of the first part\n  0.253789458;0;64;W;0.5;0.1\n"
    ));
    let expected = [
        (0, None, Operation::Read, 0, 1_447_473_088 * 512, 8192),
        (100_003_723, None, Operation::Read, 0, 4096, 512),
        (200_003_723, None, Operation::Write, 0, 0, 32_768),
    ];
    assert_eq!(short(&records), expected);
    assert_eq!((records[0].flags, records[1].flags), (Flags::NONE, Flags::AHEAD));
    let header = trace.header();
    assert_eq!((header.format, header.level, names(&trace)), (Format::Blkreplay, Level::Block, vec!["disk"]));
}

#[test]
fn invalid_lines_are_refused_with_number_and_reason() {
    let message = refused(format!("{HEAD}0.5 ; 8 ; 1\n"));
    assert!(message.contains("line 5 of made") && message.contains("3 columns"), "{message}");
    let message = refused(format!("{HEAD}0.5 ; 8 ; 1 ; X ; 0 ; 0\n"));
    assert!(message.contains("its op is \"X\""), "{message}");
    let message = refused(format!("{HEAD}0.5 ; -8 ; 1 ; R ; 0 ; 0\n"));
    assert!(message.contains("its sector is \"-8\""), "{message}");
}
