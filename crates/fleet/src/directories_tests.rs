//! Paths inside and outside, by way of symbolic links too.
use std::os::unix::fs::symlink;

use super::*;

/// A volume with a directory `inside`, beside a directory `outside`.
fn place() -> (tempfile::TempDir, PathBuf, Directories) {
    let place = tempfile::tempdir().unwrap();
    let here = place.path().canonicalize().unwrap();
    std::fs::create_dir_all(here.join("volume/inside")).unwrap();
    std::fs::create_dir(here.join("outside")).unwrap();
    let directories = Directories::open(&[here.join("volume")]).unwrap();
    (place, here, directories)
}

#[test]
fn paths_inside_are_allowed_whether_they_exist_or_not() {
    let (_place, here, directories) = place();
    for path in ["volume", "volume/inside", "volume/new", "volume/inside/new/deep"] {
        assert_eq!(directories.check(&here.join(path)).unwrap(), here.join(path));
    }
    symlink(here.join("volume/inside"), here.join("volume/link")).unwrap();
    assert_eq!(directories.check(&here.join("volume/link/new")).unwrap(), here.join("volume/inside/new"));
    symlink(here.join("volume"), here.join("alias")).unwrap();
    assert_eq!(directories.check(&here.join("alias/new")).unwrap(), here.join("volume/new"));
}

#[test]
fn paths_outside_are_refused() {
    let (_place, here, directories) = place();
    for path in
        ["outside", "outside/new", "volume2", "volume-x/new", "volume/../outside", "volume/./../outside"]
    {
        let error = directories.check(&here.join(path)).unwrap_err();
        assert!(error.to_string().starts_with("cannot use /"), "{error}");
    }
    for path in ["volume/new", "", "/", "/etc/passwd"] {
        assert!(directories.check(Path::new(path)).is_err(), "{path}");
    }
}

#[test]
fn symbolic_links_do_not_lead_outside() {
    let (_place, here, directories) = place();
    symlink(here.join("outside"), here.join("volume/link")).unwrap();
    symlink(here.join("outside/missing"), here.join("volume/dangling")).unwrap();
    symlink("loop", here.join("volume/loop")).unwrap();
    for path in
        ["volume/link", "volume/link/new", "volume/dangling", "volume/dangling/new", "volume/loop/new"]
    {
        assert!(directories.check(&here.join(path)).is_err(), "{path}");
    }
}

#[test]
fn a_volume_must_be_a_directory() {
    let (_place, here, _) = place();
    std::fs::write(here.join("file"), "").unwrap();
    for path in ["file", "missing"] {
        assert!(Directories::open(&[here.join(path)]).is_err());
    }
    // A file is no directory to lie in.
    let (_place, here, directories) = place();
    std::fs::write(here.join("volume/file"), "").unwrap();
    assert!(directories.check(&here.join("volume/file/new")).is_err());
}

#[test]
fn a_missing_volume_does_not_prevent_the_use_of_another() {
    let (_place, here, _) = place();
    let (volume, gone) = (here.join("volume"), here.join("gone"));
    let directories = Directories::open(&[volume.clone(), gone.clone()]).unwrap();
    assert_eq!(directories.check(&volume.join("new")).unwrap(), volume.join("new"));
    let run = gone.join("run");
    let why = directories.check(&run).unwrap_err().to_string();
    assert_eq!(why, format!("cannot use {}: No such file or directory (os error 2)", gone.display()));
    assert_eq!(directories.check_to_read(&run).unwrap(), run);
    // It appears later: only its absence was checked.
    std::fs::create_dir_all(&run).unwrap();
    assert!(directories.check(&run).is_err() && directories.check_to_read(&run).is_err());
    for path in [here.join("outside"), volume.join("../none"), "none".into()] {
        assert!(directories.check_to_read(&path).is_err(), "{path:?}");
    }
}
