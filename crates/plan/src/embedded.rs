//! Text files of the repository that are compiled in.

/// Defines `EMBEDDED`, the name and text of each TOML file of a folder, in the order of the list:
/// `embedded!("../../../profiles/": "csl", "romanis")`. The folder's path is relative to the file that uses
/// the macro.
#[macro_export]
macro_rules! embedded {
    ($folder:literal: $($name:literal),* $(,)?) => {
        /// Name and text of each file.
        const EMBEDDED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!($folder, $name, ".toml")))),*];
    };
}
