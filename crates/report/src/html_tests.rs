//! Whole HTML pages: of every kind of result, whole and safe whatever text is in it.

use keepup_results::Stored;

use super::{POLICY, table};
use crate::samples::samples;
use crate::table::{Table, left, right};
use crate::{History, html, markdown};

const LARGEST: usize = 1_500_000;

fn page(stored: &Stored) -> String {
    html(stored, &History::missing("no log"))
}

/// What stands between the scripts' tags, without the vendored library.
fn without_library(page: &str) -> String {
    page.replace(super::CHARTS_JS, "")
}

#[test]
fn every_kind_has_one_file_that_loads_nothing() {
    for (name, stored) in samples() {
        let page = page(&stored);
        assert!(page.len() < LARGEST, "{name}: {} bytes", page.len());
        let own = without_library(&page);
        for loading in ["src=", "href=", "@import", "url(", "http://", "https://", "fetch(", "XMLHttpRequest"]
        {
            assert!(!own.contains(loading), "{name}: {loading}");
        }
        assert!(own.contains(POLICY.split(';').next().unwrap()), "{name}");
        assert!(own.contains("</html>"), "{name}");
    }
}

#[test]
fn charts_and_their_options_belong_together() {
    for (name, stored) in samples() {
        let own = without_library(&page(&stored));
        let plots = own.matches("class=\"plot\"").count();
        let islands = own.matches("type=\"application/json\"").count();
        assert_eq!(plots, islands, "{name}");
        for island in own.split("type=\"application/json\"").skip(1) {
            let text = island.split_once('>').unwrap().1.split_once("</script>").unwrap().0;
            let option: serde_json::Value = serde_json::from_str(text).unwrap();
            let series = option["series"].as_array().unwrap();
            let drawn =
                series.iter().filter(|one| one["data"].as_array().is_some_and(|data| !data.is_empty()));
            assert!(drawn.count() > 0, "{name}: a chart without data");
        }
        let has_library = page(&stored).contains("Apache ECharts");
        assert_eq!(has_library, plots > 0, "{name}: the library is there when it is needed");
    }
}

#[test]
fn a_page_says_what_the_text_page_says() {
    for (name, stored) in samples() {
        let page = page(&stored);
        if let Stored::Qualify(summary) = &stored {
            assert!(page.contains(&format!("<p class=\"word\">{}</p>", summary.verdict)), "{name}");
            for limit in &summary.limits {
                let escaped = maud::html! { (limit) }.into_string();
                assert!(page.contains(&escaped), "{name}: {limit}");
            }
        }
        let headings = markdown(&stored).lines().filter(|line| line.starts_with("## ")).count();
        assert!(headings >= 3, "{name}: {headings}");
    }
}

/// A result in which every text that a user or another program may have chosen is hostile.
fn hostile(stored: &Stored, text: &str) -> Option<Stored> {
    let put = |value: &mut String| *value = text.to_owned();
    let mut stored = stored.clone();
    match &mut stored {
        Stored::Qualify(summary) => {
            [&mut summary.profile, &mut summary.command, &mut summary.id, &mut summary.created]
                .into_iter()
                .for_each(put);
            summary.limits.iter_mut().for_each(put);
            summary.verdict_reasons.iter_mut().for_each(put);
            summary.ceilings.volumes.iter_mut().for_each(|volume| put(&mut volume.path));
            summary.trials.iter_mut().for_each(|trial| put(&mut trial.phase));
            summary.plan = serde_json::json!({ text: [text, { text: text }] });
            summary.environment = summary.plan.clone();
        }
        Stored::Disk(summary) => {
            put(&mut summary.command);
            for run in &mut summary.runs {
                run.volumes.iter_mut().for_each(put);
                run.phases.iter_mut().for_each(|phase| phase.name = format!("write {text}"));
            }
        }
        Stored::Net(summary) => {
            summary.runs.iter_mut().for_each(|run| put(&mut run.name));
            summary.runs.iter_mut().flat_map(|run| &mut run.ends).for_each(|end| put(&mut end.name));
        }
        Stored::Register(summary) => {
            let run = summary.run.as_mut()?;
            put(&mut run.target);
            run.methods.iter_mut().for_each(|method| put(&mut method.name));
            summary.break_evens.iter_mut().for_each(|pair| put(&mut pair.way));
        }
        Stored::Replay(summary) => {
            summary.traces.iter_mut().for_each(|trace| put(&mut trace.trace));
            summary.passes.iter_mut().for_each(|pass| put(&mut pass.trace));
            let index = summary.index.as_mut()?;
            put(&mut index.baseline);
            index.places.iter_mut().for_each(|place| put(&mut place.place));
        }
        Stored::QualifyFleet(summary) => {
            [&mut summary.fleet, &mut summary.workload, &mut summary.command].into_iter().for_each(put);
            summary.hosts.iter_mut().for_each(|host| put(&mut host.host));
            summary.hosts.iter_mut().for_each(|host| host.failed = Some(text.to_owned()));
            summary.trials.iter_mut().for_each(|trial| put(&mut trial.phase));
            summary.bottleneck.iter_mut().for_each(|limit| put(&mut limit.evidence));
            summary.verdict_reasons.iter_mut().chain(&mut summary.limits).for_each(put);
        }
        Stored::Soak(summary) => {
            summary.notes = vec![text.to_owned()];
            summary.counters.iter_mut().for_each(|counter| put(&mut counter.name));
        }
        _ => return None,
    }
    Some(stored)
}

#[test]
fn hostile_names_stay_text_in_every_output() {
    let text =
        "</script><script>alert(1)</script><img src=x onerror=alert(2)>--></style>\u{1b}[31m'\"&|`\u{2028}";
    let mut tried = 0;
    for (name, stored) in samples() {
        let Some(stored) = hostile(&stored, text) else { continue };
        tried += 1;
        let page = without_library(&page(&stored));
        for broken in ["<script>alert", "<img", "--></style", "\u{2028}[", "onerror=alert(2)>"] {
            assert!(!page.contains(broken), "{name}: {broken}");
        }
        let scripts = page.matches("<script").count();
        assert_eq!(scripts, page.matches("</script>").count(), "{name}");
        // A command stands in a code span, where nothing is markup.
        let plain: Vec<String> = markdown(&stored)
            .lines()
            .filter(|line| !line.contains("repeat with"))
            .map(str::to_owned)
            .collect();
        let plain = plain.join("\n");
        assert!(!plain.contains("<script") && !plain.contains("<img") && !plain.contains('\u{1b}'), "{name}");
        let style = crate::Style { colour: false, width: 100 };
        assert!(!crate::terminal(&stored, style).contains('\u{1b}'), "{name}");
        let badge = crate::badge(&stored);
        assert!(!badge.contains("<script") && !badge.contains("<img") && !badge.contains('\u{1b}'), "{name}");
    }
    assert!(tried > 10, "{tried}");
}

#[test]
fn tables_have_heads_only_when_there_is_something_in_them() {
    let rows = || vec![vec!["<a>".into(), "1".into()]];
    let with = table(&Table { columns: vec![left("x"), right("")], rows: rows() }).into_string();
    let without = table(&Table { columns: vec![left(""), right("")], rows: rows() }).into_string();
    assert!(with.contains("<thead>") && !without.contains("<thead>"));
    assert!(with.contains("&lt;a&gt;") && with.contains("<td class=\"figures\">1</td>"));
}

#[test]
fn a_browser_runs_the_scripts_of_the_page_and_no_others() {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    use sha2::{Digest as _, Sha256};
    for (name, stored) in samples() {
        let page = page(&stored);
        assert!(!page.contains("nonce"), "{name}: a word that everybody knows allows everything");
        let policy = page.split("Content-Security-Policy\" content=\"").nth(1).unwrap();
        let policy = policy.split('"').next().unwrap().replace("&#39;", "'");
        let sources = policy.split("script-src ").nth(1).unwrap().split(';').next().unwrap();
        assert!(sources.split(' ').all(|source| source.starts_with("'sha256-")), "{name}: {sources}");
        // What has a type is data, and does not run.
        let scripts = page.split("<script>").skip(1).map(|rest| rest.split("</script>").next().unwrap());
        let scripts: Vec<&str> = scripts.collect();
        assert!(!scripts.is_empty(), "{name}");
        for script in scripts {
            let digest = BASE64_STANDARD.encode(Sha256::digest(script));
            assert!(sources.contains(&digest), "{name}: {script:.60}");
        }
    }
}
