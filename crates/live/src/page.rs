//! The page before it knows anything: its frame, filled in by its script.
use maud::{DOCTYPE, Markup, html};

/// The page. `title` is what it is of, as a host's name.
pub(crate) fn page(title: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "keepup " (title) }
                link rel="stylesheet" href="/assets/live.css";
                link rel="icon" href="data:,";
                script defer src="/assets/live.js" {}
                script async src="/assets/charts.js" {}
            }
            body {}
        }
    }
}
