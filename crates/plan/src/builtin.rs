//! Built-in profiles, one TOML file each in the repository's folder `profiles/`.

crate::embedded! {
    "../../../profiles/":
    "agipd-1m",
    "alice-flp",
    "atlas-phase2",
    "citius-840k",
    "csl",
    "csl-old",
    "cta-camera",
    "dalsa-1m60",
    "dune-supernova",
    "eiger2-16m",
    "eiger2-16m-bslz4",
    "eiger2-4m",
    "eiger2-4m-8bit",
    "frelon-2000",
    "frelon-2k",
    "gbt-cgsr2",
    "gigafrost",
    "jungfrau",
    "jungfrau-2khz",
    "jungfrau-4m",
    "jungfrau-4m-2khz",
    "jungfrau-9m",
    "lambda-750k",
    "lambda-750k-pva",
    "lwa-drx",
    "meerkat-digitiser",
    "meerkat-visibilities",
    "orca-lightning",
    "oryx-51s5m",
    "pco-edge-42",
    "pco-edge-55",
    "pco-panda",
    "photon-ii",
    "pilatus-100k",
    "pilatus3-6m",
    "pilatus3-6m-cbf",
    "protodune",
    "romanis",
    "sarnoff-512",
    "vlbi-flexbuff",
    "vlbi-mark6",
}

/// Names of the built-in profiles, sorted.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name)
}

/// Text of the built-in profile of this name.
pub(crate) fn builtin_text(name: &str) -> Option<&'static str> {
    EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
#[path = "builtin_tests.rs"]
mod tests;
