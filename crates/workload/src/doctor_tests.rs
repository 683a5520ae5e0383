//! Choice of interfaces, and invalid arguments.
use keepup_error::Diagnostic as _;

use super::*;

fn put(root: &Path, name: &str, state: &str, speed: &str, is_card: bool) {
    let directory = root.join("sys/class/net").join(name);
    std::fs::create_dir_all(&directory).unwrap();
    if is_card {
        std::fs::create_dir_all(directory.join("device")).unwrap();
    }
    for (file, text) in [("mtu", "1500"), ("operstate", state), ("speed", speed)] {
        std::fs::write(directory.join(file), text).unwrap();
    }
}

#[test]
fn the_fastest_card_that_is_up_is_chosen() {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    let chosen = |root: &Path| choose(root, &interface_names(root));
    put(root, "lo", "unknown", "-1", false);
    let (none, why) = chosen(root);
    assert!(none.is_empty() && why.unwrap().contains("no network card is up"));
    put(root, "eth0", "up", "1000", true);
    put(root, "eth1", "up", "100000", true);
    put(root, "eth2", "down", "200000", true);
    put(root, "veth0", "up", "400000", false);
    assert_eq!(chosen(root).0, ["eth1"]);
    put(root, "eth3", "up", "100000", true);
    assert_eq!(chosen(root).0, ["eth1", "eth3"]);
}

#[test]
fn a_card_without_a_speed_does_too() {
    let tree = tempfile::tempdir().unwrap();
    put(tree.path(), "eth0", "up", "-1", true);
    assert_eq!(choose(tree.path(), &["eth0".into()]).0, ["eth0"]);
}

#[test]
fn missing_items_are_refused_with_a_hint() {
    let root = Path::new("/");
    let unknown = Scope { interfaces: vec!["no-such0".into()], ..Scope::default() };
    let refused = gather(&unknown, root).unwrap_err();
    assert!(matches!(refused, WorkloadError::Interface { .. }), "{refused}");
    assert!(refused.hint().unwrap().starts_with("this host has ") && refused.hint().unwrap().contains("lo"));
    let missing = Scope { volumes: vec!["/no/such/volume".into()], ..Scope::default() };
    let refused = gather(&missing, root).unwrap_err();
    assert!(matches!(refused, WorkloadError::Volume { trouble: VolumeTrouble::Missing, .. }), "{refused}");
    assert!(refused.hint().unwrap().starts_with("mkdir"), "{refused}");
}

#[test]
fn the_way_to_this_host_is_the_loopback() {
    let scope = Scope { peer: Some([127, 0, 0, 9].into()), ..Scope::default() };
    let readings = gather(&scope, Path::new("/")).unwrap();
    let route = readings.route.unwrap();
    assert_eq!(route.interface, Reading::Value("lo".into()));
    assert_eq!(readings.interfaces.keys().collect::<Vec<_>>(), ["lo"]);
    // The kernel caps the reported MTU at the largest IPv4 packet.
    let mtu = *readings.interfaces["lo"].interface.basics.mtu.value().unwrap();
    assert_eq!(route.mtu, Reading::Value(mtu.min(65_535)));
}
