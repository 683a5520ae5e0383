//! Conversion: same requests, no file overwritten, losses reported.
use proptest::prelude::*;

use super::*;
use crate::trace::tests::{read, short};
use crate::{Format, Hints};

const MSR: &str = "128166372003061629,hm one,1,Read,383496192,32768,413\n\
                   128166372003061639,hm,0,Write,310983680,4096,57\n\
                   128166372003061629,hm,0,Write,310987776,4096,57\n";

fn trace(text: &str) -> Trace {
    Trace::from_bytes("made.csv", text.into(), &Hints::default(), None).unwrap()
}

#[test]
fn the_native_format_is_lossless() {
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("x.trace");
    let converted = convert(&mut trace(MSR), Target::Native, &path).unwrap();
    assert_eq!((converted.records, converted.devices, converted.lost.len()), (3, 2, 0));
    let (direct, first) = read(MSR);
    let (records, second) = read(std::fs::read(&path).unwrap());
    assert_eq!((records, second.devices()), (direct, first.devices()));
    assert_eq!(second.corrections(), first.corrections());
    assert_eq!(second.header().format, Format::Msr);
    // A second conversion keeps the header of the first.
    let again = here.path().join("y.trace");
    let mut native = Trace::open(std::slice::from_ref(&path), &Hints::default(), None).unwrap();
    convert(&mut native, Target::Native, &again).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), std::fs::read(again).unwrap());
}

#[test]
fn an_iolog_has_the_form_that_fio_reads() {
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("x.iolog");
    let converted = convert(&mut trace(MSR), target_for(&path), &path).unwrap();
    let expected = "fio version 3 iolog\n0 hm_one.1 add\n0 hm_one.1 open\n0 hm_one.1 read 383496192 32768\n\
                    0 hm.0 add\n0 hm.0 open\n0 hm.0 write 310987776 4096\n1 hm.0 write 310983680 4096\n\
                    1 hm_one.1 close\n1 hm.0 close\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    assert_eq!(converted.lost.len(), 2, "{converted:?}");
    assert!(converted.lost[0].contains("completion times of 3"), "{converted:?}");
    assert!(converted.lost[1].contains("\"hm one.1\", replaced by \"hm_one.1\""), "{converted:?}");
}

#[test]
fn no_file_is_overwritten_and_no_incomplete_file_is_left() {
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("x.trace");
    std::fs::write(&path, "mine").unwrap();
    let message = convert(&mut trace(MSR), Target::Native, &path).unwrap_err().to_string();
    assert!(message.contains("the file exists"), "{message}");
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    // Names that are equal after replacement of whitespace.
    let text = MSR.replace("hm one,1", "a b,1").replace("hm,0", "a_b,1");
    let other = here.path().join("y.iolog");
    let message = convert(&mut trace(&text), Target::Iolog3, &other).unwrap_err();
    assert!(format!("{message}").contains("would have the name \"a_b.1\""), "{message}");
    assert!(!other.exists());
    // A trace with an error beyond its first window.
    let mut rows: String = (0..200_000).map(|n| format!("0,{},512,R,{n}.0\n", n * 7)).collect();
    rows.push_str("0,8,512,X,1.0\n");
    assert!(convert(&mut trace(&rows), Target::Native, &other).is_err());
    assert!(!other.exists());
}

proptest! {
    #[test]
    fn an_iolog_round_trips(
        all in prop::collection::vec((0u64..5_000_000, 0usize..4, 0u64..1 << 50, 1u32.., 0u16..3), 1..100),
    ) {
        let mut writer = IologWriter::new(Vec::new()).unwrap();
        for name in ["a", "b", "c"] {
            writer.device(&TraceDevice { name: name.into(), bytes: None }).unwrap();
        }
        let (mut us, mut written, mut seen) = (0, Vec::new(), Vec::new());
        for (gap_us, operation, offset, bytes, device) in all {
            us += if written.is_empty() { 0 } else { gap_us };
            let operation = Operation::ALL[operation];
            let (offset, bytes) = if operation == Operation::Flush { (0, 0) } else { (offset, bytes) };
            let record = Record::new(us * 1000, operation, device, offset, bytes);
            writer.record(&record).unwrap();
            // A reader numbers devices in order of appearance.
            if !seen.contains(&device) {
                seen.push(device);
            }
            let device = seen.iter().position(|seen| *seen == device).unwrap() as u16;
            let mut expected = record;
            expected.device = device;
            written.push(expected);
        }
        let mut text = Vec::new();
        std::mem::swap(&mut writer.out, &mut text);
        let (records, _) = read(text);
        prop_assert_eq!(short(&records), short(&written));
    }
}
