//! The page of a qualification: the search as it goes, and the recorder of the trial under way.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use keepup_live::{Live, Scene};
use keepup_measure::clock::{Clock, SystemClock};
use keepup_qualify::progress::Progress;
use keepup_qualify::settings::Settings;
use keepup_recorder::watch::WatcherSlot;
use keepup_results::ResultSummary;
use keepup_results::live::{Search, SearchCeiling, SearchTrial};

use crate::http::{HttpArgs, Offer};
use crate::verbs::serve::catalog;

/// Lines that are kept of what was said.
const SAID_MAX: usize = 200;

/// Pause between two looks at the recorder of a trial.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The page, and what is on it.
pub(super) struct Page {
    live: Arc<Live>,
    search: Search,
    over: Arc<AtomicBool>,
    looker: Option<JoinHandle<()>>,
}

impl Page {
    /// Serves it, where it is asked for.
    pub(super) fn start(http: &HttpArgs, settings: &Settings) -> anyhow::Result<Option<Self>> {
        let catalog = Some(catalog(std::slice::from_ref(&settings.results)));
        let Some(opening) = http.open(None, Offer { catalog, ..Offer::default() })? else { return Ok(None) };
        let search = Search {
            profile: settings.profile.name.clone(),
            required_bytes_per_second: settings.profile.required_bytes_per_second(),
            ..Search::default()
        };
        let (live, over) = (Arc::new(opening.start()?), Arc::new(AtomicBool::new(false)));
        let looker = match &settings.watcher_slot {
            Some(watcher_slot) => Some(looker(Arc::clone(&live), watcher_slot.clone(), Arc::clone(&over))?),
            None => None,
        };
        let page = Self { live, search, over, looker };
        page.show();
        Ok(Some(page))
    }

    /// Enters a piece of news.
    pub(super) fn tell(&mut self, progress: &Progress) {
        let search = &mut self.search;
        match progress {
            Progress::Phase { name, estimate_s } => {
                search.phase.clone_from(name);
                search.estimate_seconds = Some(*estimate_s);
            }
            Progress::Trial { phase, rate, seconds } => {
                let since_unix_ns = SystemClock.unix_ns();
                search.trial = Some(SearchTrial {
                    label: phase.clone(),
                    bytes_per_second: *rate,
                    seconds: *seconds,
                    since_unix_ns,
                });
            }
            Progress::Tried { trial, .. } => {
                search.trial = None;
                search.trials.push((**trial).clone());
            }
            Progress::Ceiling { what, bytes_per_second } => {
                let (what, bytes_per_second) = (what.clone(), *bytes_per_second);
                search.ceilings.push(SearchCeiling { what, bytes_per_second });
            }
            Progress::Done { text } | Progress::Warning { text } => {
                search.said.push(text.clone());
                if search.said.len() > SAID_MAX {
                    search.said.remove(0);
                }
            }
        }
        self.show();
    }

    /// Enters the answer.
    pub(super) fn end(&mut self, summary: &ResultSummary) {
        self.search.trial = None;
        self.search.phase = "done".into();
        self.search.estimate_seconds = None;
        self.search.verdict = Some(summary.verdict);
        self.search.verdict_reasons.clone_from(&summary.verdict_reasons);
        self.search.result_directory = Some(summary.result_directory.clone());
        self.show();
    }

    fn show(&self) {
        self.live.publish(Scene { search: Some(&self.search), ..Scene::default() });
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(looker) = self.looker.take() {
            looker.thread().unpark();
            // A panic there has been printed.
            let _ = looker.join();
        }
    }
}

/// Shows the figures of the trial under way, again and again.
fn looker(
    live: Arc<Live>,
    watcher_slot: WatcherSlot,
    over: Arc<AtomicBool>,
) -> anyhow::Result<JoinHandle<()>> {
    let look = move || {
        keepup_sys::thread::yield_to_others();
        while !over.load(Ordering::Relaxed) {
            if let Some(moment) = watcher_slot.sample() {
                live.publish(Scene { moment: Some(&moment), ..Scene::default() });
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    };
    let thread = std::thread::Builder::new().name("ku-look".into()).spawn(look);
    thread.context("cannot start a thread for the page")
}
