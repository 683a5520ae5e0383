//! Parsing of Debian's newest kernel.
use super::*;

#[test]
fn the_newest_kernel_is_read_from_what_apt_says() {
    let text = "Package: linux-image-amd64\nVersion: 6.1.192-2\n\
        Depends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\nDescription: Linux\n";
    let found = kernel(text).unwrap();
    assert_eq!(found, Kernel { release: "6.1.0-56-amd64".into(), version: "6.1.192-2".into() });
    assert_eq!(found.series(), "6.1");
    assert_eq!(found.common_headers(), "linux-headers-6.1.0-56-common");
}

#[test]
fn a_description_without_a_kernel_names_none() {
    assert_eq!(kernel("Package: linux-image-amd64\nDepends: something-else (= 1)\n"), None);
    assert_eq!(kernel(""), None);
}
