//! Alibaba traces, with rows as in their README.
use crate::Operation;
use crate::trace::tests::{names, read, refused, short};

#[test]
fn offsets_and_sizes_are_bytes_and_times_us() {
    let (records, trace) =
        read("419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360813\n");
    let expected = [
        (0, None, Operation::Write, 0, 8_792_731_648, 16_384),
        (46_000, None, Operation::Read, 1, 59_110_326_272, 360_448),
    ];
    assert_eq!((short(&records), names(&trace)), (expected.to_vec(), vec!["419", "725"]));
}

#[test]
fn unknown_columns_are_refused() {
    let row = "419,W,8792731648,16384,1577808144360767\n";
    let message = refused(format!("device,opcode,offset,length,timestamp\n{row}"));
    assert!(message.contains("line 1 of made") && message.contains("device_id,opcode"), "{message}");
    let message = refused(format!("{row}419,W,8792731648,16384,1577808144360767,4\n"));
    assert!(message.contains("line 2 of made") && message.contains("6 columns"), "{message}");
}
