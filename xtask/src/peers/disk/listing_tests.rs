//! What is read out of the listing's lines.

use super::*;

const SAID: &str = "Transferred 4096 MBytes (   1 files) in   4.950 s: 827.47 MB/s
Transferred 4096 MBytes ( 512 files) in   5.100 s: 803.14 MB/s
Transferred   16 MBytes (2048 files) in   0.900 s: 17.78 MB/s
Transferred 4096 MBytes (   1 files) in   6.400 s: 640.00 MB/s
Transferred 4096 MBytes ( 512 files) in   6.200 s: 660.65 MB/s
Transferred   16 MBytes (2048 files) in   0.420 s: 38.10 MB/s
";

#[test]
fn every_line_is_a_phase() {
    let phases = phases(SAID).unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase.phase.as_str()).collect();
    let expected = [
        "create 1 x 4 GiB",
        "create 512 x 8 MiB",
        "create 2048 x 8 KiB",
        "overwrite 1 x 4 GiB",
        "overwrite 512 x 8 MiB",
        "overwrite 2048 x 8 KiB",
    ];
    assert_eq!(names, expected);
    assert_eq!((phases[2].bytes, phases[2].seconds), (16 << 20, 0.9));
}

#[test]
fn fewer_lines_or_other_words_are_refused() {
    let why = phases("Transferred 1 MBytes\n").unwrap_err().to_string();
    assert!(why.contains("printed 1 series"), "{why}");
    let strange = SAID.replacen("17.78", "fast", 1);
    assert!(phases(&strange).unwrap_err().to_string().contains("fast"));
    assert!(phases(&SAID.replacen("2048 files", "0 files", 1)).is_err());
}
