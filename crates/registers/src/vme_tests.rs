//! Parsing of VME window settings.
use super::*;

#[test]
fn window_settings_are_parsed_and_printed() {
    let window: VmeWindow = "address=0x10000,size=65536,space=A32".parse().unwrap();
    let master = window.master();
    assert_eq!(
        master,
        Master { enable: 1, address: 0x10000, bytes: 0x10000, space: 4, cycle: 0xa001, width: 4 }
    );
    assert_eq!(window.to_string(), "address=0x10000,size=0x10000,space=A32,cycle=SCT+USER+DATA,width=32");
    let other: VmeWindow = "width=16,cycle=MBLT+PROG,space=A24,size=0x100,address=0xffff00".parse().unwrap();
    assert_eq!((other.cycle, other.master().width), (0x6004, 2));
    assert_eq!(other.to_string().parse::<VmeWindow>().unwrap(), other);
}

#[test]
fn invalid_window_settings_are_refused_with_a_reason() {
    for (text, words) in [
        ("", "key=value"),
        ("address=0x10000", "needs address, size and space"),
        ("address=1,size=1", "needs address, size and space"),
        ("address=1,size=0,space=A32", "setting \"size=0\""),
        ("address=-1,size=1,space=A32", "\"address=-1\""),
        ("address=1,size=1,space=A48", "\"space=A48\""),
        ("address=1,size=1,space=A32,width=24", "\"width=24\""),
        ("address=1,size=1,space=A32,cycle=SCT+BLT", "SCT|BLT|MBLT"),
        ("address=1,size=1,space=A32,cycle=", "\"cycle=\""),
        ("address=1,size=1,space=A32,colour=red", "\"colour=red\""),
        ("address=0xff,size=0xff02,space=A16", "address space A16"),
        ("address=0xffffffffffffffff,size=2,space=A64", "address space A64"),
    ] {
        let why = text.parse::<VmeWindow>().unwrap_err();
        assert!(why.contains(words), "{text}: {why}");
    }
}
