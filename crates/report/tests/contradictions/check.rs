//! Pages of a qualification in every form, and what on them contradicts the result. Tests of other crates use
//! it too.

use std::collections::BTreeSet;

use keepup_report::{History, Style, badge, html, markdown, terminal, terminal_full};
use keepup_results::format::{digits, number, plural, rate, rates};
use keepup_results::{Bottleneck, FailedRate, ResultSummary, Stored, TrialResult};
use serde_json::Value;

pub(crate) const BRIEF: &str = "brief";
pub(crate) const FULL: &str = "full";
pub(crate) const MARKDOWN: &str = "markdown";
pub(crate) const HTML: &str = "html";
pub(crate) const BADGE: &str = "badge";

/// Nothing is broken into lines.
const WIDE: Style = Style { colour: false, width: 100_000 };
/// Longest stage that a page does not shorten.
const STAGE_CHARACTERS_MAX: usize = 25;
/// A rate of three digits may be so much below the one that it stands for.
const ROUNDING: f64 = 0.995;
const RATE_UNITS: [&str; 7] = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s", "EB/s"];
const TIME_UNITS: [(&str, f64); 6] =
    [("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0), ("days", 86_400.0), ("us", 1e-6)];

/// The result in every form.
pub(crate) fn pages(summary: &ResultSummary) -> Vec<(&'static str, String)> {
    let stored = Stored::Qualify(Box::new(summary.clone()));
    vec![
        (BRIEF, terminal(&stored, WIDE)),
        (FULL, terminal_full(&stored, WIDE)),
        (MARKDOWN, markdown(&stored)),
        (HTML, html(&stored, &History::default())),
        (BADGE, badge(&stored)),
    ]
}

/// All contradictions within the result, and between it and its pages, one sentence each.
pub(crate) fn contradictions(summary: &ResultSummary, pages: &[(&str, String)]) -> Vec<String> {
    [facts(summary, pages), mixed_units(pages)].concat()
}

/// Contradictions within the result, and sentences of its pages that contradict it.
pub(crate) fn facts(summary: &ResultSummary, pages: &[(&str, String)]) -> Vec<String> {
    let of_page = |(form, text): &(&str, String)| named(form, Page::new(form, text).facts(summary));
    summary.check().into_iter().chain(pages.iter().flat_map(of_page)).collect()
}

/// Sentences with rates in different units.
pub(crate) fn mixed_units(pages: &[(&str, String)]) -> Vec<String> {
    let of_page = |(form, text): &(&str, String)| named(form, Page::new(form, text).mixed_units());
    pages.iter().flat_map(of_page).collect()
}

fn named(form: &str, found: Vec<String>) -> Vec<String> {
    found.into_iter().map(|what| format!("{form}: {what}")).collect()
}

/// A page as a reader sees it.
struct Page<'a> {
    form: &'a str,
    /// Cells, values and paragraphs.
    texts: Vec<String>,
    /// The same in one text.
    words: String,
    /// Rows of all tables; of a terminal, every line.
    rows: Vec<Vec<String>>,
    /// Options of the charts.
    charts: Vec<Value>,
}

type Parts = (Vec<String>, Vec<Vec<String>>);

impl<'a> Page<'a> {
    fn new(form: &'a str, text: &str) -> Self {
        let (texts, rows) = match form {
            BRIEF | FULL => parts_of_terminal(text),
            MARKDOWN => parts_of_markdown(text),
            _ => parts_of_html(text),
        };
        let charts = if form == HTML { charts(text) } else { Vec::new() };
        Self { form, words: texts.join(" "), texts, rows, charts }
    }

    fn says(&self, words: &str) -> bool {
        self.words.contains(words)
    }

    fn is_terminal(&self) -> bool {
        [BRIEF, FULL].contains(&self.form)
    }

    /// Whether it has the blocks below the verdict.
    fn is_full(&self) -> bool {
        [FULL, MARKDOWN, HTML].contains(&self.form)
    }

    /// Rates, bytes per second, each of them after `words` and before the two words that are returned.
    fn rates_after(&self, words: &str) -> Vec<(f64, String)> {
        let after = self.words.split(words).skip(1).map(|rest| rest.split(' ').take(4).collect::<Vec<_>>());
        after
            .filter_map(|rest| {
                let (rate, _) = *rates_in(&rest.get(..2)?.join(" ")).first()?;
                Some((rate, rest[2..].join(" ")))
            })
            .collect()
    }

    fn mixed_units(&self) -> Vec<String> {
        let sentences = self.texts.iter().flat_map(|text| text.split(". "));
        let is_mixed = |sentence: &&str| {
            // In backticks a load as the user wrote it.
            let own = sentence.split('`').step_by(2);
            own.flat_map(rates_in).map(|(_, unit)| unit).collect::<BTreeSet<_>>().len() > 1
        };
        sentences.filter(is_mixed).map(|sentence| format!("mixes units in `{sentence}`")).collect()
    }

    fn facts(&self, summary: &ResultSummary) -> Vec<String> {
        [
            self.verdict(summary),
            self.held(summary),
            self.failures(summary),
            self.limit_of_the_source(summary),
            self.soak(summary),
            self.bottleneck(summary),
            self.losses(summary),
            self.untested(summary),
            self.changes(summary),
            self.trials(summary),
        ]
        .concat()
    }

    /// The verdict stands in every form, on a badge with its rates.
    fn verdict(&self, summary: &ResultSummary) -> Vec<String> {
        let verdict = summary.verdict.to_string();
        let badge = badge_text(summary);
        let has = |wanted: &str| self.texts.iter().any(|text| text == wanted);
        let is_said = match self.form {
            BADGE => has(&format!("keepup: {badge}")),
            HTML => has(&verdict),
            MARKDOWN => self.words.starts_with(&format!("# {verdict}: ")),
            _ => has(&format!("[ {verdict} ]")),
        };
        let mut found = list(!is_said, || format!("does not say {verdict} as the result does"));
        let is_small = summary.headroom.is_none_or(|headroom| headroom < summary.headroom_wanted);
        let says_small = self.says("the headroom is smaller than wanted");
        found.extend(list(says_small && !is_small, || "calls a wanted headroom too small".into()));
        let says_interrupted = self.says("the measurement was interrupted");
        found.extend(list(says_interrupted && !summary.interrupted, || "says it was interrupted".into()));
        found
    }

    /// What held, and what failed above it.
    fn held(&self, summary: &ResultSummary) -> Vec<String> {
        let mut found = Vec::new();
        let soak = summary.soak.as_ref().and(summary.qualified_bytes_per_second.zip(summary.headroom));
        let Some((qualified, headroom)) = soak else {
            let is_said = !self.is_terminal() || self.says("held no rate");
            return list(!is_said, || "does not say that no rate held".into());
        };
        if self.says("passed a whole soak") || self.says("passed the whole soak") {
            found.push("says that no rate passed a soak, but one did".to_owned());
        }
        if !self.is_terminal() {
            return found;
        }
        let failed = lowest_failed(summary);
        let upper = failed.as_ref().map_or(qualified, |(rate, _)| *rate);
        let [held, upper] = rates([qualified, upper]);
        if !self.says(&format!("held {held} ({}x) for ", digits(headroom))) {
            found.push(format!("does not say that {held} held"));
        }
        let failed = failed.map(|(_, how)| format!("; {upper} {how}"));
        if let Some(failed) = failed.filter(|failed| !self.says(failed)) {
            found.push(format!("does not say what failed: `{failed}`"));
        }
        found
    }

    /// "No rate failed" is said only if none did.
    fn failures(&self, summary: &ResultSummary) -> Vec<String> {
        let mut found = Vec::new();
        let held = summary.qualified_bytes_per_second.unwrap_or(0.0);
        let above = |trial: &&TrialResult| trial.asked_bytes_per_second > held && !trial.is_unthrottled();
        let failed_above = || summary.trials.iter().filter(|trial| !trial.passed).filter(above);
        let machine_failed = failed_above().any(TrialResult::machine_failed);
        let because = "no higher rate failed because of the machine";
        if self.words.replace(because, "").contains("no higher rate failed")
            && failed_above().next().is_some()
        {
            found.push("says that no higher rate failed, but one did".to_owned());
        }
        if self.says(because) && machine_failed {
            found.push("says that the machine failed at no higher rate, but it did".to_owned());
        }
        if self.says("no rate failed") && summary.trials.iter().any(|trial| !trial.passed) {
            found.push("says that no rate failed, but one did".to_owned());
        }
        for (words, has_them) in [
            ("Lowest failure: ", [MARKDOWN, HTML].contains(&self.form)),
            ("lowest rate that failed", self.is_full()),
        ] {
            if has_them && self.says(words) != summary.failed_above.is_some() {
                found.push(format!("`{words}` stands for a failure that the result has not, or is missing"));
            }
        }
        found
    }

    /// The source is the limit only above every rate that it offered, and only if the machine did not fail
    /// below.
    fn limit_of_the_source(&self, summary: &ResultSummary) -> Vec<String> {
        let mut found = Vec::new();
        let offered = summary.trials.iter().map(offered).fold(0.0, f64::max);
        let limits = self.rates_after("may not keep its schedule at ");
        for (limit, _) in limits.iter().filter(|(limit, _)| *limit < ROUNDING * offered) {
            let (limit, offered) = (rate(*limit), rate(offered));
            found.push(format!("says that the source may not keep {limit}, but it offered {offered}"));
        }
        let limit = limits.iter().map(|(limit, _)| *limit).fold(f64::INFINITY, f64::min);
        let held = summary.qualified_bytes_per_second.unwrap_or(0.0);
        let is_limit = |trial: &TrialResult| {
            let asked = trial.asked_bytes_per_second;
            trial.machine_failed() && asked > held && asked < ROUNDING * limit
        };
        if self.says("limit was not found") && summary.trials.iter().any(is_limit) {
            found.push("says that the machine's limit was not found, but it failed".to_owned());
        }
        found
    }

    /// The soak that the verdict rests on is a row of the table of trials.
    fn soak(&self, summary: &ResultSummary) -> Vec<String> {
        let Some(qualified) = summary.qualified_bytes_per_second.filter(|_| self.is_full()) else {
            return Vec::new();
        };
        let held = rate(qualified);
        let is_it = |row: &Vec<String>| {
            let is_soak = row.first().is_some_and(|phase| phase == "soak");
            is_soak && row.get(2) == Some(&held) && row.last().is_some_and(|outcome| outcome == "ok")
        };
        list(!self.rows.iter().any(is_it), || format!("has no row of a soak at {held} that held"))
    }

    /// The limit is named as the counter-trials say.
    fn bottleneck(&self, summary: &ResultSummary) -> Vec<String> {
        let mut found = Vec::new();
        let Some(bottleneck) = &summary.bottleneck else {
            return list(self.says("The bottleneck is"), || "names a bottleneck that is not known".into());
        };
        if !self.is_terminal() && !self.is_full() {
            return found;
        }
        let (stage, counters) = (&bottleneck.stage, &bottleneck.counter_trials);
        let is_resolved = *stage != Bottleneck::NOT_RESOLVED;
        let is_doubtful = is_resolved && !counters.is_empty() && !bottleneck.is_confirmed();
        let doubt = if is_doubtful { " (not confirmed)" } else { "" };
        if self.says("(not confirmed)") != is_doubtful {
            found.push(format!("confirms {stage} otherwise than the counter-trials"));
        }
        if self.is_terminal()
            && stage.chars().count() <= STAGE_CHARACTERS_MAX
            && !self.says(&format!("limit {stage}{doubt}"))
        {
            found.push(format!("does not name the limit {stage}{doubt}"));
        }
        if !self.is_full() {
            return found;
        }
        let sentence = match is_resolved {
            true => format!("The bottleneck is {stage}{doubt}: "),
            false => "The bottleneck was not resolved: ".to_owned(),
        };
        if !self.says(&sentence) || (!is_resolved && self.says("The bottleneck is")) {
            found.push(format!("does not say `{sentence}`"));
        }
        for counter in counters {
            let how = match (counter.confirmed, &counter.not_run) {
                (true, _) => "confirmed",
                (false, Some(_)) => "not tested",
                (false, None) => "not confirmed",
            };
            let test = format!("{} {how}, {}", counter.stage, counter.change);
            found.extend(list(!self.says(&test), || format!("does not say `{test}`")));
        }
        found
    }

    /// Losses of the run that decides, and what the soak does not exclude.
    fn losses(&self, summary: &ResultSummary) -> Vec<String> {
        let mut found = Vec::new();
        let ledger = &summary.ledger;
        let (has_lost, has_sent) = (ledger.lost.events > 0, ledger.sent.events > 0);
        let is_lossless = |text: &String| text.contains("x) for ") && text.contains(" without loss; ");
        if self.is_terminal() && has_lost && self.texts.iter().any(is_lossless) {
            found.push("says that nothing was lost while the rate held".to_owned());
        }
        if self.is_full() && has_sent && self.says("No event was lost at any stage") == has_lost {
            found.push("has other losses than the ledger".to_owned());
        }
        let bound = summary.soak.zip(summary.required_run_seconds);
        if let Some((soak, run)) = bound.filter(|_| self.is_full() && has_sent && !has_lost) {
            let incidents = number((soak.upper_bound_loss_per_second * run).ceil() as u64);
            let is_said = self.says(&format!("fewer than {incidents} incidents in "));
            found.extend(list(!is_said, || format!("does not exclude {incidents} incidents")));
            let seen = summary.soak_losses().count() as u64;
            let is_said = self.says(&format!("on average ({})", plural(seen, "failed soak")));
            found.extend(list(is_said != (seen > 0), || format!("does not say what {seen} incidents cost")));
        }
        found
    }

    /// Length of the longest run, rates that were not tried, space.
    fn untested(&self, summary: &ResultSummary) -> Vec<String> {
        let mut found = Vec::new();
        let scheduled = || summary.trials.iter().filter(|trial| !trial.is_unthrottled());
        let lossless = scheduled().filter(|trial| trial.lost_events == 0).map(|trial| trial.seconds);
        let longest = lossless.fold(0.0, f64::max);
        for rest in self.words.split("the longest run without loss took ").skip(1) {
            if time_at_the_start(rest).is_none_or(|took| took * ROUNDING > longest) {
                found.push(format!("says that a run without loss took longer than {longest} s"));
            }
        }
        if self.says("no run at a set rate was without loss") && longest > 0.0 {
            found.push("says that no run was without loss, but one was".to_owned());
        }
        let highest = scheduled().map(|trial| trial.asked_bytes_per_second).fold(0.0, f64::max);
        let untried = self.rates_after("no rate above ").into_iter().filter(|(_, then)| then == "was tried,");
        for (limit, _) in untried.filter(|(limit, _)| *limit < ROUNDING * highest) {
            found.push(format!("says that nothing above {} was tried", rate(limit)));
        }
        let storage = &summary.storage;
        let is_short = storage.run_bytes.zip(storage.usable_bytes).is_some_and(|(run, usable)| run > usable);
        let is_full = is_short && storage.hours_of_storage_left_at_required.is_some();
        if self.is_terminal() && self.says("space full after ") != is_full {
            found.push("says otherwise whether the space is enough".to_owned());
        }
        found
    }

    /// Machines that became slower, and stalls.
    fn changes(&self, summary: &ResultSummary) -> Vec<String> {
        let mut found = Vec::new();
        let is_slower = |trial: &TrialResult| trial.phase == "recheck" && !trial.passed;
        if self.says("the machine became slower") && !summary.trials.iter().any(is_slower) {
            found.push("says that the machine became slower, but no trial shows it".to_owned());
        }
        if self.says("so no rate was proven") && summary.qualified_bytes_per_second.is_some() {
            found.push("says that no rate was proven, but one was".to_owned());
        }
        let stalls = summary.trials.iter().filter_map(|trial| trial.stall_ms_max);
        let longest_s = stalls.fold(0.0, f64::max) / 1e3;
        for rest in self.words.split("a trial had a stall of ").skip(1) {
            if time_at_the_start(rest).is_none_or(|stall_s| stall_s * ROUNDING > longest_s) {
                found.push(format!("says that a stall took longer than {longest_s} s"));
            }
        }
        found
    }

    /// No bar mixes requested and reached rates, and a trial without a schedule has no requested one.
    fn trials(&self, summary: &ResultSummary) -> Vec<String> {
        let phases = summary.trials.iter().filter(|trial| trial.is_unthrottled()).map(|trial| &trial.phase);
        let phases: BTreeSet<&String> = phases.collect();
        let is_wrong = |row: &&Vec<String>| {
            let is_unthrottled = row.len() >= 5 && row.first().is_some_and(|phase| phases.contains(phase));
            is_unthrottled && row.get(2).is_some_and(|asked| asked != "unthrottled")
        };
        let wrong = self.rows.iter().filter(is_wrong);
        let mut found: Vec<String> =
            wrong.map(|row| format!("has a requested rate of a trial without one: {row:?}")).collect();
        let names = (1..).zip(&summary.trials).map(|(n, trial): (usize, _)| format!("{n} {}", trial.phase));
        let names: Vec<Value> = names.map(Value::from).collect();
        if self.form != HTML || names.is_empty() {
            return found;
        }
        let names = Value::Array(names);
        let is_it = |option: &&Value| option["xAxis"][0]["data"] == names;
        match self.charts.iter().find(is_it) {
            Some(option) => found.extend(wrong_points(option, &summary.trials)),
            None => found.push("has no chart of the trials".to_owned()),
        }
        found
    }
}

/// One sentence if the condition holds.
fn list(is_found: bool, what: impl FnOnce() -> String) -> Vec<String> {
    is_found.then(what).into_iter().collect()
}

/// Text of the badge.
fn badge_text(summary: &ResultSummary) -> String {
    let held = summary.qualified_bytes_per_second.or(summary.knee_bytes_per_second);
    let failed = summary.failed_above.as_ref().map(|above| above.bytes_per_second);
    let [held_text, failed_text] =
        rates([held.or(failed).unwrap_or_default(), failed.or(held).unwrap_or_default()]);
    let held = held.map(|_| format!(" {held_text}")).unwrap_or_default();
    let failed = failed.map(|_| format!(", failed {failed_text}")).unwrap_or_default();
    format!("{}{held}{failed}", summary.verdict)
}

/// The lowest rate that failed above the one that held, and how.
fn lowest_failed(summary: &ResultSummary) -> Option<(f64, String)> {
    let upper = || summary.knee_interval?.upper_bytes_per_second.map(|upper| (upper, "failed".to_owned()));
    let of = |above: &FailedRate| (above.bytes_per_second, above.outcome());
    summary.failed_above.as_ref().map(of).or_else(upper)
}

/// Rate that the source offered in a trial at least, bytes per second.
fn offered(trial: &TrialResult) -> f64 {
    let is_asked = trial.passed && !trial.is_unthrottled();
    let has_source_failed = trial.failed_condition.as_deref() == Some(TrialResult::SOURCE_FAILED);
    match (is_asked, has_source_failed) {
        (true, _) => trial.asked_bytes_per_second,
        (false, true) => 0.0,
        (false, false) => trial.achieved_bytes_per_second,
    }
}

/// Points of the chart of the trials that are not what their series shows: bars requested rates, dots durable
/// ones.
fn wrong_points(option: &Value, trials: &[TrialResult]) -> Vec<String> {
    let unit = option["yAxis"][0]["name"].as_str().and_then(|name| name.strip_prefix("rate, "));
    let power = RATE_UNITS.iter().position(|other| Some(*other) == unit);
    let Some(power) = power else { return vec!["has a chart of the trials without a unit of rates".into()] };
    let mut found = Vec::new();
    for series in option["series"].as_array().into_iter().flatten() {
        let is_bar = series["type"] == "bar";
        for (place, point) in series["data"].as_array().into_iter().flatten().enumerate() {
            let (place, drawn) = match is_bar {
                true => (Some(place), point.get("value").unwrap_or(point)),
                false => (point[0].as_u64().map(|place| place as usize), &point[1]),
            };
            let Some(trial) = place.and_then(|place| trials.get(place)) else {
                found.push(format!("has a point without a trial: {point}"));
                continue;
            };
            let asked = Some(trial.asked_bytes_per_second).filter(|asked| *asked > 0.0);
            let (name, wanted) = match is_bar {
                true => ("requested", asked.filter(|_| !trial.is_unthrottled())),
                false => ("durable", Some(trial.durable_bytes_per_second)),
            };
            let drawn = drawn.as_f64().map(|drawn| drawn * 1000f64.powi(power as i32));
            let is_right = match (drawn, wanted) {
                (Some(drawn), Some(wanted)) => (drawn - wanted).abs() <= 1e-3 * drawn.abs().max(wanted.abs()),
                (drawn, wanted) => drawn == wanted,
            };
            if !is_right {
                let series = &series["name"];
                found.push(format!("has a point of {series} that is not the {name} rate of its trial"));
            }
        }
    }
    found
}

/// Rates with their units, values in bytes per second.
fn rates_in(text: &str) -> Vec<(f64, &'static str)> {
    let marks = ['(', ')', ',', '.', ';', ':'];
    let words: Vec<&str> = text.split(' ').map(|word| word.trim_matches(marks)).collect();
    let mut found = Vec::new();
    for pair in words.windows(2) {
        let unit = RATE_UNITS.iter().position(|unit| *unit == pair[1]);
        if let (Ok(value), Some(power)) = (pair[0].parse::<f64>(), unit) {
            found.push((value * 1000f64.powi(power as i32), RATE_UNITS[power]));
        }
    }
    found
}

/// Time that a text starts with, seconds.
fn time_at_the_start(text: &str) -> Option<f64> {
    let mut words = text.split(' ');
    let value: f64 = words.next()?.parse().ok()?;
    let unit = words.next()?.trim_matches([';', '.', ',']);
    TIME_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, seconds)| value * seconds)
}

/// Text with single spaces and without the escapes of HTML.
fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Two spaces separate the columns of a line.
fn parts_of_terminal(text: &str) -> Parts {
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim().trim_start_matches("- ").split("  ").map(str::trim);
        cells.filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    let rows: Vec<Vec<String>> = text.lines().map(cells).filter(|row| !row.is_empty()).collect();
    (rows.concat(), rows)
}

fn parts_of_markdown(text: &str) -> Parts {
    let (mut texts, mut rows) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut cells = vec![];
        let mut cell = String::new();
        let mut characters = line.chars();
        while let Some(c) = characters.next() {
            match c {
                '\\' => cell.extend(characters.next()),
                '|' => cells.push(unescaped(&std::mem::take(&mut cell))),
                c => cell.push(c),
            }
        }
        cells.push(unescaped(&cell));
        if line.starts_with("| ") {
            // Bars stand at both ends of a row.
            let inner = cells[1..cells.len() - 1].to_vec();
            texts.extend(inner.iter().filter(|cell| !cell.is_empty()).cloned());
            rows.push(inner);
        } else {
            texts.push(cells.join("|").trim_start_matches("- ").to_owned());
        }
    }
    (texts, rows)
}

/// Texts between tags, up to the scripts.
fn parts_of_html(text: &str) -> Parts {
    let body = text.split("<body>").nth(1).unwrap_or(text).split("<script").next().unwrap_or_default();
    let (mut texts, mut rows): Parts = Parts::default();
    let mut is_in_cell = false;
    for piece in body.split('<') {
        let (tag, text) = piece.split_once('>').unwrap_or(("", piece));
        match tag.split(' ').next().unwrap_or_default() {
            "tr" => rows.push(Vec::new()),
            "td" | "th" => {
                is_in_cell = true;
                rows.last_mut().into_iter().for_each(|row| row.push(String::new()));
            }
            "/td" | "/th" => is_in_cell = false,
            _ => {}
        }
        let text = unescaped(text);
        if text.is_empty() {
            continue;
        }
        let cell = rows.last_mut().and_then(|row| row.last_mut()).filter(|_| is_in_cell);
        if let Some(cell) = cell {
            let space = if cell.is_empty() { "" } else { " " };
            cell.push_str(&format!("{space}{text}"));
        }
        texts.push(text);
    }
    (texts, rows)
}

/// Options of the charts of a page.
fn charts(text: &str) -> Vec<Value> {
    let islands = text.split("<script type=\"application/json\" id=\"chart-").skip(1);
    let json = islands.filter_map(|island| island.split_once('>')?.1.split("</script>").next());
    json.filter_map(|json| serde_json::from_str(json).ok()).collect()
}
