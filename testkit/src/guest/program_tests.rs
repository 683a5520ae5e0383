//! Parsing of shared libraries.

use super::*;

#[test]
fn libraries_are_where_the_loader_says() {
    let listed = "\tlinux-vdso.so.1 (0x00007f98c2e1c000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f98c2d0a000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f98c2e1e000)
";
    let found: Vec<&str> = libraries(listed).collect();
    assert_eq!(found, ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    assert_eq!(libraries("\tstatically linked\n").count(), 0);
}
