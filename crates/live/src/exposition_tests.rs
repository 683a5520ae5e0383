//! The two formats.
use super::MetricKind::{Counter, Gauge};
use super::{Exposition, TextFormat};

fn text(form: TextFormat) -> String {
    let mut out = Exposition::new(form);
    out.one(Counter, "keepup_a_bytes", "bytes", "Bytes\nof a.", 3.0);
    out.family(Gauge, "keepup_b", "", "B.", [(vec![("path", "/a \"b\"\\c\nd"), ("n", "1")], 0.5)]);
    out.one(Gauge, "keepup_unknown", "", "Not there.", None);
    out.finish()
}

#[test]
fn open_metrics_has_units_family_names_without_total_and_an_eof() {
    assert_eq!(
        text(TextFormat::OpenMetrics),
        "# HELP keepup_a_bytes Bytes\\nof a.\n# TYPE keepup_a_bytes counter\n# UNIT keepup_a_bytes bytes\n\
         keepup_a_bytes_total 3\n\
         # HELP keepup_b B.\n# TYPE keepup_b gauge\n\
         keepup_b{path=\"/a \\\"b\\\"\\\\c\\nd\",n=\"1\"} 0.5\n# EOF\n"
    );
}

#[test]
fn the_older_format_names_a_counter_family_like_its_samples() {
    assert_eq!(
        text(TextFormat::Prometheus),
        "# HELP keepup_a_bytes_total Bytes\\nof a.\n# TYPE keepup_a_bytes_total counter\n\
         keepup_a_bytes_total 3\n\
         # HELP keepup_b B.\n# TYPE keepup_b gauge\n\
         keepup_b{path=\"/a \\\"b\\\"\\\\c\\nd\",n=\"1\"} 0.5\n"
    );
}
