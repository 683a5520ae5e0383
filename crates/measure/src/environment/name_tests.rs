//! Host name of a record.
use super::*;

#[test]
fn the_host_name_can_be_left_out() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(Naming::default().host(root.path()), None);
    let directory = root.path().join("proc/sys/kernel");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("hostname"), "daq1\n").unwrap();
    assert_eq!(Naming::default().host(root.path()).as_deref(), Some("daq1"));
    let hidden = Naming { hides_host: true, label: None };
    assert_eq!(hidden.host(root.path()), None);
}
