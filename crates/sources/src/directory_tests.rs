//! Options of directories, and names that are recorded.
use super::*;
use crate::SourceAddress;

fn parse(text: &str) -> DirectoryAddress {
    match text.parse::<SourceAddress>() {
        Ok(SourceAddress::Directory(address)) => address,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_path_and_options() {
    let address = parse("dir:/data/in");
    assert_eq!(
        (address.path.as_path(), address.with_existing, address.settle),
        (Path::new("/data/in"), false, None)
    );
    let address = parse("dir:in here,existing=record,settle=500 ms,pattern=*.tif");
    assert_eq!((address.path.as_path(), address.with_existing), (Path::new("in here"), true));
    assert_eq!(address.settle, Some(Duration::from_millis(500)));
    assert_eq!(address.to_string(), "dir:in here,existing=record,settle=500 ms,pattern=*.tif");
    assert_eq!(address.prefix(), "in_here");
}

#[test]
fn options_that_directories_do_not_have() {
    let why = |text: &str| text.parse::<SourceAddress>().unwrap_err().to_string();
    assert!(why("dir:").contains("expected dir:PATH"));
    assert!(why("dir:a,window=3").contains("dir: has recursive, pattern, existing and settle"));
    assert!(why("dir:a,recursive=yes").contains("unknown option"));
    assert!(why("dir:a,existing").contains("expected OPTION=VALUE"));
    assert!(why("dir:a,existing=keep").contains("record or skip"));
    assert!(why("dir:a,settle=1ms").contains("between 20 ms and 1 h"));
    assert!(why("dir:a,settle=soon").contains("length of time"));
    assert!(why("dir:a,pattern=b/*").contains("pattern of file names"));
}

#[test]
fn unfinished_and_hidden_names_are_not_recorded() {
    let address = parse("dir:a");
    let refused: [&[u8]; 6] = [b".x", b".x.tif", b"x.tmp", b"x.h5.part", b"x.partial", b"x~"];
    assert!(!refused.iter().any(|name| address.wants(name)));
    let wanted: [&[u8]; 5] = [b"x.tif", b"tmp", b"a\nb", b"\xFF\xFE", b"x.tmp.cbf"];
    assert!(wanted.iter().all(|name| address.wants(name)));
}

#[test]
fn patterns_match_bytes() {
    let address = parse("dir:a,pattern=*.tif,pattern=run[0-9]_?.h5,pattern=x.tmp");
    let wanted: [&[u8]; 4] = [b"a.tif", b"\xFF.tif", b"run3_a.h5", b"x.tmp"];
    assert!(wanted.iter().all(|name| address.wants(name)));
    let refused: [&[u8]; 4] = [b".a.tif", b"a.tiff", b"runx_a.h5", b"y.tmp"];
    assert!(!refused.iter().any(|name| address.wants(name)));
    assert!(parse("dir:a,pattern=.*.tif").wants(b".a.tif"));
}

#[test]
fn a_prefix_is_a_valid_part_of_a_stream_name() {
    let long = format!("dir:/{}é/x y\n", "d".repeat(300));
    let prefix = parse(&long).prefix();
    assert!(prefix.len() <= 200 && prefix.ends_with("é/x_y_"), "{prefix}");
    assert_eq!(parse("dir:👩\u{200d}🔬/\u{202e}a\tb").prefix(), "👩_🔬/_a_b");
}

#[test]
fn subdirectories_are_recorded_on_request() {
    let plain = parse("dir:a");
    let address = parse("dir:a,recursive,pattern=*.tif");
    assert!(!plain.is_recursive && address.is_recursive && !plain.wants_directory(b"scan"));
    let wanted: [&[u8]; 4] = [b"scan", b"a/b/c", b"\xFF\n", b".hidden/seen"];
    assert!(wanted.iter().all(|path| address.wants_directory(path)));
    let refused: [&[u8]; 4] = [b".snapshot", b"a/.b", b"scan.tmp", b"a/scan~"];
    assert!(!refused.iter().any(|path| address.wants_directory(path)));
    let deep = |levels: usize| vec!["d"; levels].join("/").into_bytes();
    assert!(address.wants_directory(&deep(DEPTH_MAX)) && !address.wants_directory(&deep(DEPTH_MAX + 1)));
    let long = ["x".repeat(255).as_str(); 16].join("/").into_bytes();
    assert!(!address.wants_directory(&long) && address.wants_directory(&long[..long.len() - 256]));
    assert!(address.wants(b"x.tmp/a.tif") && !address.wants(b"a.tif/b"));
}
