//! Paths in results that come from a host.
use super::*;

#[test]
fn a_result_names_the_directory_in_which_it_is_stored() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("1-r1");
    let write = |name: &str, text: &str| {
        fs::create_dir_all(run.join("qualify-1")).unwrap();
        fs::write(run.join("qualify-1").join(name), text).unwrap();
    };
    let summary = |directory: &str| format!(r#"{{"a": "qualify-1", "result_directory": "{directory}"}}"#);
    let text = |name: &str| fs::read_to_string(run.join("qualify-1").join(name)).unwrap();
    write("result.json", &summary("/tmp/host/qualify-1"));
    write("report.html", "<p>/tmp/host/qualify-1</p>");
    fs::write(run.join("stdout.txt"), "result: /tmp/host/qualify-1\n").unwrap();
    name_directories(&run).unwrap();
    let here = run.join("qualify-1").display().to_string();
    assert_eq!(text("result.json"), summary(&here));
    assert_eq!(text("report.html"), format!("<p>{here}</p>"));
    // A result of another kind, and one with a path that is not its own.
    for other in ["{\"streams\": 4}".to_owned(), summary("a"), summary(""), summary("qualify-1")] {
        write("result.json", &other);
        name_directories(&run).unwrap();
        assert_eq!(text("result.json"), other);
    }
}
