//! scratch
use keepup_report::*;
use keepup_results::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let p = std::path::Path::new(&a[1]);
    let (s, h): (ResultSummary, History) = if p.is_dir() {
        let d = ResultDirectory::open(p).unwrap();
        (d.read_summary().unwrap(), History::read(d.events().unwrap()))
    } else {
        (serde_json::from_str(&std::fs::read_to_string(p).unwrap()).unwrap(), History::missing("none"))
    };
    std::fs::write(&a[2], qualify_html(&s, &h)).unwrap();
}
