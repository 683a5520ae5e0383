//! HTML frame of the page, filled in by the scripts.
use maud::{DOCTYPE, Markup, html};

/// The page. `title` names its subject, such as a host; without `has_catalog` nothing stored is shown.
pub(crate) fn page(title: &str, has_catalog: bool) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "keepup " (title) }
                link rel="stylesheet" href="/assets/colours.css";
                link rel="stylesheet" href="/assets/live.css";
                link rel="icon" href="data:,";
                script type="module" src="/assets/live.js" {}
                script async src="/assets/charts.js" {}
            }
            body {
                header {
                    p.brand { "keepup" span.kind { (title) } }
                    p #contact role="status" { "connecting" }
                    button #theme type="button" { "dark or light" }
                }
                main {
                    section #entry hidden {}
                    section #headline.top { div.verdict { p.word { "…" } h1 {} } }
                    section #warnings hidden aria-live="polite" {}
                    (section("run", "Run control"))
                    (section("search", "Qualification"))
                    (section("flow", "Rates"))
                    (section("hosts", "Hosts"))
                    (section("volumes", "Volumes"))
                    (section("streams", "Streams"))
                    (section("ledger", "Ledger"))
                    (section("machine", "Processors"))
                    @if has_catalog { (section("catalog", "Results and recordings")) }
                }
                footer {
                    "MB = 10" sup { "6" } " bytes. For programs: "
                    a href="/metrics" { "metrics" } ", " a href="/health" { "health" } ", "
                    a href="/api/v1/openapi.json" { "interface" } "."
                }
            }
        }
    }
}

/// A section that is hidden until it has content.
fn section(id: &str, title: &str) -> Markup {
    html! {
        section id=(id) hidden { h2 { (title) } div.body {} }
    }
}
