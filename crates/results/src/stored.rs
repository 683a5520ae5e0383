//! Reading of stored results of any kind and version.
//!
//! A result is given by its directory or by its summary (`result.json`, or the output of `--json`).
//! A directory of an interrupted measurement has no summary; it is rebuilt from the events if
//! possible.
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use keepup_sys::regular;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::campaign::CampaignSummary;
use crate::checksum::{self, Check};
use crate::compare::CompareSummary;
use crate::directory::ResultDirectory;
use crate::disk::DiskSummary;
use crate::error::ResultsError;
use crate::event::Event;
use crate::figure::{Figure, Figures};
use crate::file_names::{EVENTS, SUMMARY};
use crate::fleet_qualify::FleetQualifySummary;
use crate::head::{Head, Headed, Kind};
use crate::net::NetSummary;
use crate::predict::PredictSummary;
use crate::record::RecordSummary;
use crate::register::RegisterSummary;
use crate::replay::ReplaySummary;
use crate::soak::SoakSummary;
use crate::summary::ResultSummary;
use crate::test::{Begun, Ended, TestSummary};
use crate::version;

/// Maximum summary size, bytes; ten thousand cells of a campaign stay far below it.
const SUMMARY_BYTES_MAX: u64 = 1 << 30;

/// A stored result.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredResult {
    /// Given path: directory or file.
    pub path: PathBuf,
    /// Summary.
    pub summary: Stored,
    /// Whether the summary was missing and was rebuilt from the events.
    pub is_rebuilt: bool,
    /// Whether a checksum shows that the summary is as it was written. Otherwise it has none.
    pub is_checked: bool,
}

/// A summary by kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// A qualification.
    Qualify(Box<ResultSummary>),
    /// A qualification of a fleet.
    QualifyFleet(Box<FleetQualifySummary>),
    /// A test of disks.
    Disk(Box<DiskSummary>),
    /// A test of the network.
    Net(Box<NetSummary>),
    /// A test of registers.
    Register(Box<RegisterSummary>),
    /// A replay.
    Replay(Box<ReplaySummary>),
    /// Recording trials.
    Record(Box<RecordSummary>),
    /// A bit-error test.
    Soak(Box<SoakSummary>),
    /// Campaign.
    Campaign(Box<CampaignSummary>),
    /// Comparison of results.
    Compare(Box<CompareSummary>),
    /// A prediction.
    Predict(Box<PredictSummary>),
}

impl StoredResult {
    /// Opens a result directory, or the file of a summary.
    ///
    /// # Errors
    /// The path does not exist, was not created by keepup or by a newer version, is damaged, or was
    /// interrupted before anything was measured.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        let found = fs::metadata(path).map_err(ResultsError::io("open the result", path))?;
        if found.is_dir() {
            let has_checksums = ResultDirectory::open(path)?.check()?;
            let opened = Self::open_directory(path, SUMMARY_BYTES_MAX)?;
            return Ok(Self { is_checked: opened.is_checked || has_checksums, ..opened });
        }
        let (summary, is_checked) = Stored::parse(&read(path)?, path, None)?;
        Ok(Self { path: path.to_path_buf(), summary, is_rebuilt: false, is_checked })
    }

    /// Opens an untrusted result directory: only regular files are read, with at most `bytes_max`
    /// bytes of each in memory. The event log is read only if there is no summary, and not checked.
    ///
    /// # Errors
    /// As [`StoredResult::open`], and if a file is larger.
    pub fn open_directory(path: &Path, bytes_max: u64) -> Result<Self, ResultsError> {
        in_directory(&ResultDirectory::open(path)?, bytes_max)
    }

    /// Directory of the result, if any.
    #[must_use]
    pub fn directory(&self) -> Option<ResultDirectory> {
        ResultDirectory::open(&self.path).ok()
    }
}

impl Stored {
    /// Parses a summary of any kind and version; returns also whether it has a checksum. `started` is its
    /// first event, if any.
    fn parse(text: &str, path: &Path, started: Option<&Event>) -> Result<(Self, bool), ResultsError> {
        let damaged = |source| ResultsError::Summary { path: path.to_path_buf(), source };
        let mut value: Value = serde_json::from_str(text).map_err(damaged)?;
        let is_checked = match checksum::take(&mut value) {
            Check::Changed => return Err(ResultsError::Changed { path: path.to_path_buf(), list: None }),
            check => check == Check::Same,
        };
        let kind = version::update(&mut value, path, started)?;
        let damaged = |source| ResultsError::Summary { path: path.to_path_buf(), source };
        fn boxed<T: DeserializeOwned>(value: Value) -> Result<Box<T>, serde_json::Error> {
            serde_json::from_value(value).map(Box::new)
        }
        match kind {
            Kind::Qualify => boxed(value).map(Self::Qualify),
            Kind::QualifyFleet => boxed(value).map(Self::QualifyFleet),
            Kind::Disk => boxed(value).map(Self::Disk),
            Kind::Net => boxed(value).map(Self::Net),
            Kind::Register => boxed(value).map(Self::Register),
            Kind::Replay => boxed(value).map(Self::Replay),
            Kind::Record => boxed(value).map(Self::Record),
            Kind::Soak => boxed(value).map(Self::Soak),
            Kind::Campaign => boxed(value).map(Self::Campaign),
            Kind::Compare => boxed(value).map(Self::Compare),
            Kind::Predict => boxed(value).map(Self::Predict),
        }
        .map(|summary| (summary, is_checked))
        .map_err(damaged)
    }

    fn parts(&self) -> (&dyn Headed, &dyn Figures) {
        match self {
            Self::Qualify(summary) => (&**summary, &**summary),
            Self::QualifyFleet(summary) => (&**summary, &**summary),
            Self::Disk(summary) => (&**summary, &**summary),
            Self::Net(summary) => (&**summary, &**summary),
            Self::Register(summary) => (&**summary, &**summary),
            Self::Replay(summary) => (&**summary, &**summary),
            Self::Record(summary) => (&**summary, &**summary),
            Self::Soak(summary) => (&**summary, &**summary),
            Self::Campaign(summary) => (&**summary, &**summary),
            Self::Compare(summary) => (&**summary, &**summary),
            Self::Predict(summary) => (&**summary, &**summary),
        }
    }
}

/// Lets the result of a kind of test be shown as any stored one is.
macro_rules! of_test {
    ($($kind:ident: $summary:ty),*) => {
        $(impl From<$summary> for Stored {
            fn from(summary: $summary) -> Self {
                Self::$kind(Box::new(summary))
            }
        })*
    };
}

of_test!(
    QualifyFleet: FleetQualifySummary,
    Disk: DiskSummary,
    Net: NetSummary,
    Register: RegisterSummary,
    Replay: ReplaySummary,
    Record: RecordSummary,
    Soak: SoakSummary
);

impl Headed for Stored {
    fn head(&self) -> Head<'_> {
        self.parts().0.head()
    }
}

impl Figures for Stored {
    fn figures(&self) -> Vec<Figure> {
        self.parts().1.figures()
    }
}

/// Reads a summary given directly, possibly through a link or pipe.
fn read(path: &Path) -> Result<String, ResultsError> {
    let unreadable = ResultsError::io("read the summary", path);
    let mut text = String::new();
    let file = fs::File::open(path).and_then(|file| {
        let count = file.take(SUMMARY_BYTES_MAX + 1).read_to_string(&mut text)?;
        if count as u64 > SUMMARY_BYTES_MAX {
            return Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
        }
        Ok(())
    });
    file.map_err(unreadable)?;
    Ok(text)
}

fn in_directory(directory: &ResultDirectory, bytes_max: u64) -> Result<StoredResult, ResultsError> {
    let path = directory.path().join(SUMMARY);
    let started = directory.events().ok().and_then(|mut events| events.next()?.ok());
    let (summary, is_rebuilt, is_checked) = match regular::read_text(&path, bytes_max) {
        Ok(text) => {
            let (summary, is_checked) = Stored::parse(&text, &path, started.as_ref())?;
            (summary, false, is_checked)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            (rebuild(directory, started, bytes_max)?, true, false)
        }
        Err(error) => return Err(ResultsError::io("read the summary", &path)(error)),
    };
    Ok(StoredResult { path: directory.path().to_path_buf(), summary, is_rebuilt, is_checked })
}

/// Rebuilds a result from its events.
fn rebuild(
    directory: &ResultDirectory,
    started: Option<Event>,
    bytes_max: u64,
) -> Result<Stored, ResultsError> {
    let cut = |reason: &str| ResultsError::CutOff {
        path: directory.path().to_path_buf(),
        reason: reason.to_owned(),
    };
    let Some(Event::Started {
        schema_version,
        tool_version,
        id,
        kind,
        command,
        profile,
        plan,
        environment,
        t_unix_ns,
    }) = started
    else {
        return Err(cut("its event log has no start event"));
    };
    version::known(kind, u64::from(schema_version), &directory.path().join(EVENTS))?;
    let begun =
        Begun { id, tool_version, created_unix_ns: t_unix_ns, command, workload: profile, plan, environment };
    match kind {
        Kind::Disk => {
            let mut summary = ended::<DiskSummary>(&begun);
            summary.runs = only(directory, bytes_max, |event| match event {
                Event::DiskRun { run, .. } => Some(*run),
                _ => None,
            })?;
            Ok(Stored::Disk(Box::new(summary)))
        }
        Kind::Net => {
            let mut summary = ended::<NetSummary>(&begun);
            summary.runs = only(directory, bytes_max, |event| match event {
                Event::NetRun { run, .. } => Some(*run),
                _ => None,
            })?;
            Ok(Stored::Net(Box::new(summary)))
        }
        Kind::Record => {
            let mut summary = ended::<RecordSummary>(&begun);
            summary.runs = only(directory, bytes_max, |event| match event {
                Event::RecordRun { run, .. } => Some(*run),
                _ => None,
            })?;
            Ok(Stored::Record(Box::new(summary)))
        }
        Kind::Replay => {
            let mut summary = ended::<ReplaySummary>(&begun);
            summary.passes = only(directory, bytes_max, |event| match event {
                Event::ReplayPass { pass, .. } => Some(*pass),
                _ => None,
            })?;
            Ok(Stored::Replay(Box::new(summary)))
        }
        Kind::Campaign => Err(cut("can be resumed: keepup campaign resume DIR")),
        Kind::Qualify | Kind::QualifyFleet | Kind::Register | Kind::Soak | Kind::Compare | Kind::Predict => {
            Err(cut("its results are known only at the end"))
        }
    }
}

/// An interrupted test.
fn ended<S: TestSummary>(begun: &Begun) -> S {
    let mut summary = S::begun(begun);
    let why = "the measurement was interrupted; rebuilt from its events".to_owned();
    summary.end(Ended { failure: Some(why), interrupted: false });
    summary
}

/// Events selected by `pick`, with at most `bytes_max` bytes of lines in total.
fn only<T>(
    directory: &ResultDirectory,
    bytes_max: u64,
    pick: impl Fn(Event) -> Option<T>,
) -> Result<Vec<T>, ResultsError> {
    let mut events = directory.events()?;
    let (mut picked, mut bytes) = (Vec::new(), 0);
    while let Some(event) = events.next() {
        let Some(one) = pick(event?) else { continue };
        bytes += events.line_bytes();
        if bytes > bytes_max {
            let reason = format!("its events hold more than {bytes_max} bytes of what was measured");
            return Err(ResultsError::CutOff { path: directory.path().to_path_buf(), reason });
        }
        picked.push(one);
    }
    Ok(picked)
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
