//! The result as text of 80 columns.
use keepup_results::KneeInterval;
use keepup_results::format::{bytes, rate, seconds};

use super::result::{FleetQualification, FleetTrialResult, QualifiedHost};
use crate::table::{paragraph, table};

const HOSTS: [&str; 5] = ["recorder", "source", "streams", "held", "alone"];
const CLOCKS: [&str; 3] = ["recorder", "start (ms)", "clock (ms)"];
const TRIALS: [&str; 6] = ["trial", "failed on", "requested", "recorded", "time", "lost"];

impl FleetQualification {
    /// The result: trials, recorders, figures of all, and the verdict last.
    #[must_use]
    pub fn page(&self) -> String {
        let trials = (1..).zip(&self.trials).map(|(number, trial)| trial.row(number));
        let trials = head(TRIALS).chain(trials);
        let hosts = head(HOSTS).chain(self.hosts.iter().map(QualifiedHost::row));
        let clocks = head(CLOCKS).chain(self.hosts.iter().map(QualifiedHost::clocks));
        let mut page = table(&trials.collect::<Vec<_>>(), 2);
        page.push('\n');
        page.push_str(&table(&hosts.collect::<Vec<_>>(), 2));
        for host in &self.hosts {
            if let Some(why) = &host.failed {
                let stage = host.stage.as_deref().unwrap_or_default();
                page.push_str(&paragraph("  ", &format!("{}: {why}; {stage}", host.host)));
            }
        }
        page.push('\n');
        page.push_str(&table(&clocks.collect::<Vec<_>>(), 1));
        let share = self.control.share().map(|share| format!("{:.4} % of the payload", share * 100.0));
        page.push_str(&format!("control traffic: {}\n", share.unwrap_or_else(|| "no payload".to_owned())));
        page.push_str("limits:\n");
        for limit in &self.limits {
            page.push_str(&paragraph("  - ", limit));
        }
        page.push('\n');
        self.add_figures(&mut page);
        let Self { fleet, profile, streams, verdict, .. } = self;
        page.push_str(&format!("\nfleet {fleet}, {profile}, {streams} streams: {verdict}\n"));
        for reason in &self.verdict_reasons {
            page.push_str(&paragraph("  - ", reason));
        }
        page.trim_end().to_owned()
    }

    fn add_figures(&self, page: &mut String) {
        let required = rate(self.required_bytes_per_second);
        page.push_str(&format!("required    {required}, with a headroom of {:.2}x\n", self.headroom_wanted));
        if let Some(knee) = &self.knee {
            page.push_str(&format!("knee        {}\n", knee_text(knee)));
        }
        if let (Some(qualified), Some(soak)) = (self.qualified_bytes_per_second, &self.soak) {
            let (qualified, time, stored) = (rate(qualified), seconds(soak.seconds), bytes(soak.bytes));
            page.push_str(&format!("qualified   {qualified}: a soak of {time} with {stored}\n"));
        }
        if let Some(failed) = &self.failed_above {
            let (at, condition) = (rate(failed.bytes_per_second), &failed.condition);
            page.push_str(&format!("failed      {at}: {condition}\n"));
        }
        if let Some(limit) = &self.bottleneck {
            page.push_str(&paragraph("bottleneck  ", &format!("{}: {}", limit.stage, limit.evidence)));
        }
    }
}

fn head<const N: usize>(titles: [&str; N]) -> impl Iterator<Item = [String; N]> {
    std::iter::once(titles.map(str::to_owned))
}

fn knee_text(knee: &KneeInterval) -> String {
    let upper = knee.upper_bytes_per_second.map(|upper| format!(" held, {} failed", rate(upper)));
    format!("{}{}", rate(knee.lower_bytes_per_second), upper.unwrap_or_else(|| " held".to_owned()))
}

impl FleetTrialResult {
    fn row(&self, number: usize) -> [String; 6] {
        let mut failed =
            self.parts.iter().filter(|part| part.failed.is_some()).map(|part| part.host.as_str());
        let first = failed.next().map(str::to_owned);
        let first = first.unwrap_or_else(|| if self.passed { "-" } else { "source" }.to_owned());
        let more = failed.count();
        [
            format!("{number}  {}", self.phase),
            if more > 0 { format!("{first} and {more} more") } else { first },
            self.asked_bytes_per_second.map_or_else(|| "full speed".to_owned(), rate),
            rate(self.achieved_bytes_per_second),
            seconds(self.seconds),
            self.lost_events.to_string(),
        ]
    }
}

impl QualifiedHost {
    fn row(&self) -> [String; 5] {
        let none = || "-".to_owned();
        [
            self.host.clone(),
            self.source.clone(),
            self.streams.to_string(),
            self.held_bytes_per_second.map_or_else(none, rate),
            self.alone.map_or_else(none, |knee| rate(knee.lower_bytes_per_second)),
        ]
    }

    fn clocks(&self) -> [String; 3] {
        let none = || "-".to_owned();
        let start = self.start_delay_seconds_max.map(|start_s| format!("{:+.2}", start_s * 1e3));
        let clock = self.clock.map(|clock| clock.text());
        [self.host.clone(), start.unwrap_or_else(none), clock.unwrap_or_else(none)]
    }
}
