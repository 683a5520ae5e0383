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

#[test]
fn a_flag_goes_before_the_environment_and_children_inherit_both() {
    let environment = |name: &str| match name {
        "KEEPUP_LABEL" => Some("rack 3".to_owned()),
        "KEEPUP_NO_HOST_NAME" => Some(String::new()),
        _ => None,
    };
    let found = Naming::default().or_environment(environment);
    assert_eq!(found, Naming { hides_host: false, label: Some("rack 3".into()) });
    let given = Naming { hides_host: true, label: Some("rack 4".into()) };
    assert_eq!(given.clone().or_environment(environment), given);
    let variables = given.variables();
    let child = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, text)| text.clone());
    assert_eq!(Naming::default().or_environment(child), given);
    assert!(Naming::default().variables().is_empty());
}
