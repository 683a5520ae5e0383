//! Parsing of Debian's kernels.
use super::*;

#[test]
fn kernels_are_read_from_what_apt_says() {
    let text = "Package: linux-image-amd64\nVersion: 6.1.192-2\n\
        Depends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\nDescription: Linux\n\n\
        Package: linux-image-amd64\nVersion: 6.1.176-1\nDepends: linux-image-6.1.0-50-amd64 (= 6.1.176-1)\n";
    let found = kernels(text);
    let newest = Kernel { release: "6.1.0-56-amd64".into(), version: "6.1.192-2".into() };
    let released = Kernel { release: "6.1.0-50-amd64".into(), version: "6.1.176-1".into() };
    assert_eq!(found, [newest, released]);
    assert_eq!(
        found[0].packages(),
        [
            "linux-image-6.1.0-56-amd64",
            "linux-headers-6.1.0-56-amd64",
            "linux-headers-6.1.0-56-common",
            "linux-kbuild-6.1",
            "linux-source-6.1"
        ]
    );
}

#[test]
fn a_description_without_a_kernel_names_none() {
    assert_eq!(kernels("Package: linux-image-amd64\nDepends: something-else (= 1)\n"), []);
    assert_eq!(kernels(""), []);
}
