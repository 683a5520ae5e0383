//! Results that arrive complete, and results of hostile hosts.
use super::*;

const END: CommandEnd = CommandEnd { code: Some(5), signal: None };

#[test]
fn a_result_arrives_with_all_its_files() {
    let [from, to] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let files = [("stdout.txt", "out\n"), ("disk-1/result.json", "{}"), ("disk-1/events.jsonl", "")];
    fs::create_dir(from.path().join("disk-1")).unwrap();
    for (name, text) in files {
        fs::write(from.path().join(name), text).unwrap();
    }
    let reply = pack(END, from.path()).unwrap();
    assert_eq!(unpack(&reply, to.path()).unwrap(), END);
    for (name, text) in files {
        assert_eq!(fs::read_to_string(to.path().join(name)).unwrap(), text, "{name}");
    }
    assert_eq!(super::files(to.path()).unwrap().len(), files.len());
    let again = unpack(&reply, to.path()).unwrap_err();
    assert!(again.to_string().contains("File exists"), "{again}");
}

#[test]
fn links_and_too_many_files_are_errors() {
    let from = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc/passwd", from.path().join("link")).unwrap();
    assert!(pack(END, from.path()).unwrap_err().to_string().contains("link: not a regular file"));
    fs::remove_file(from.path().join("link")).unwrap();
    (0..=FILES_MAX).for_each(|n| drop(File::create(from.path().join(n.to_string())).unwrap()));
    let why = pack(END, from.path()).unwrap_err().to_string();
    assert_eq!(why, "the result has more than 1000 files");
}

/// The answer with these fields.
fn fields(fields: &[&[u8]]) -> Reply {
    let mut writer = ReplyWriter::new();
    let end = serde_json::to_vec(&END).unwrap();
    write_field(&mut writer, &end).unwrap();
    fields.iter().for_each(|field| write_field(&mut writer, field).unwrap());
    writer.finish().unwrap()
}

#[test]
fn a_hostile_host_writes_nothing_outside() {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let deep = ["d"; DEPTH_MAX + 1].join("/");
    let names: [&[u8]; 9] =
        [b"../x", b"/tmp/keepup-hostile", b"a/../../x", b".", b"x/", b"x/.", b"x//y", b"nul\0", b"\xff\xfe"];
    for name in names.into_iter().chain([deep.as_bytes()]) {
        let why = unpack(&fields(&[name, b"data", b""]), &inner).unwrap_err();
        assert!(matches!(why, ReplyError::Malformed(_)), "{name:?}: {why}");
    }
    assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1);
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 0);
}

#[test]
fn only_files_that_cannot_be_stored_here_are_errors_of_this_machine() {
    let long = "n".repeat(300);
    for names in [["a", "a"], ["a", "a/b"], ["a/b", "a"], ["a", &long]] {
        let place = tempfile::tempdir().unwrap();
        let all = [names[0].as_bytes(), b"data", names[1].as_bytes(), b"data", b""];
        let why = unpack(&fields(&all), place.path()).unwrap_err();
        assert!(matches!(why, ReplyError::Malformed(_)), "{names:?}: {why}");
    }
    let missing = tempfile::tempdir().unwrap().path().join("missing");
    let why = unpack(&fields(&[b""]), &missing).unwrap_err();
    assert!(matches!(&why, ReplyError::Io(text) if text.contains("No such file")), "{why}");
}

#[test]
fn a_result_that_is_cut_off_or_lies_about_its_length_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    assert!(unpack(&fields(&[]), place.path()).is_err());
    assert!(unpack(&fields(&[b"file"]), place.path()).is_err());
    let mut writer = ReplyWriter::new();
    writer.write(&u64::MAX.to_le_bytes()).unwrap();
    let why = unpack(&writer.finish().unwrap(), place.path()).unwrap_err();
    assert!(why.to_string().contains("limit 1024"), "{why}");
}
