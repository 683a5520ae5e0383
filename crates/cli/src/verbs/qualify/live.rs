//! Live page of a qualification: progress of the search and counters of the current trial.
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

use crate::http::{HttpArgs, PageContent};
use crate::verbs::serve::catalog;

/// Limit on stored messages.
const MESSAGES_MAX: usize = 200;

/// Sampling interval of the trial's recorder.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Live page with the progress of the search.
pub(super) struct SearchPage {
    live: Arc<Live>,
    search: Search,
    stop: Arc<AtomicBool>,
    publisher: Option<JoinHandle<()>>,
}

impl SearchPage {
    /// Starts the page if `--http` is given.
    pub(super) fn start(http: &HttpArgs, settings: &Settings) -> anyhow::Result<Option<Self>> {
        let catalog = Some(catalog(std::slice::from_ref(&settings.results)));
        let Some(page) = http.prepare(None, PageContent { catalog, ..PageContent::default() })? else {
            return Ok(None);
        };
        let search = Search {
            profile: settings.profile.name.clone(),
            required_bytes_per_second: settings.profile.required_bytes_per_second(),
            ..Search::default()
        };
        let (live, stop) = (Arc::new(page.start()?), Arc::new(AtomicBool::new(false)));
        let publisher = match &settings.watcher_slot {
            Some(watcher_slot) => {
                Some(publisher(Arc::clone(&live), watcher_slot.clone(), Arc::clone(&stop))?)
            }
            None => None,
        };
        let page = Self { live, search, stop, publisher };
        page.show();
        Ok(Some(page))
    }

    /// Updates the page with a progress message.
    pub(super) fn update(&mut self, progress: &Progress) {
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
            Progress::MissingFile { .. } => return,
            Progress::Done { text } | Progress::Warning { text } => {
                search.said.push(text.clone());
                if search.said.len() > MESSAGES_MAX {
                    search.said.remove(0);
                }
            }
        }
        self.show();
    }

    /// Updates the page with the result.
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

impl Drop for SearchPage {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(publisher) = self.publisher.take() {
            publisher.thread().unpark();
            // A panic of the thread has been printed.
            let _ = publisher.join();
        }
    }
}

/// Starts a thread that publishes the counters of the current trial.
fn publisher(
    live: Arc<Live>,
    watcher_slot: WatcherSlot,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<JoinHandle<()>> {
    let publish = move || {
        keepup_sys::thread::yield_to_others();
        while !stop.load(Ordering::Relaxed) {
            if let Some(moment) = watcher_slot.sample() {
                live.publish(Scene { moment: Some(&moment), ..Scene::default() });
            }
            std::thread::park_timeout(SAMPLE_EVERY);
        }
    };
    let thread = std::thread::Builder::new().name("ku-look".into()).spawn(publish);
    thread.context("cannot start the thread of the live page")
}
