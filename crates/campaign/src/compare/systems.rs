//! Systems of a comparison: results, places of one result, or cells of a campaign.
use keepup_results::{CampaignSummary, Figure, Figures, Headed, Stored, StoredResult, machine_name};
use serde_json::Value;

use super::{Candidate, CompareError, Published, workload_of};

/// Qualified rate and the lowest rate that failed above it, if one did, bytes per second.
pub(super) type Ends = (f64, Option<f64>);

/// Column of a comparison.
#[derive(Debug, Clone)]
pub(super) struct System {
    pub(super) name: String,
    pub(super) results: Vec<String>,
    /// Place, if the system is one place of a result.
    pub(super) place: Option<String>,
    pub(super) created: String,
    pub(super) tool_version: Option<String>,
    /// Distinct names of the machines of its results.
    pub(super) machines: Vec<String>,
    pub(super) published: Option<String>,
    pub(super) workload: String,
    pub(super) plan: Value,
    pub(super) environment: Value,
    /// Background loads, as on the command line.
    pub(super) loads: Vec<String>,
    pub(super) figures: Vec<Figure>,
    /// Both ends of the qualified rate for each qualification; `None` without a qualified rate.
    pub(super) qualified: Vec<Option<Ends>>,
    /// Set of systems that were measured alternately.
    pub(super) turns: Option<usize>,
}

impl System {
    fn new(name: &str, result: &StoredResult) -> Self {
        let head = result.summary.head();
        Self {
            name: name.to_owned(),
            results: vec![result.path.display().to_string()],
            place: None,
            created: head.created.to_owned(),
            tool_version: Some(head.tool_version.to_owned()),
            machines: machine_name(head.environment).into_iter().collect(),
            published: None,
            workload: workload_of(result),
            plan: head.plan.clone(),
            environment: head.environment.clone(),
            loads: loads_of(&result.summary),
            figures: result.summary.figures(),
            qualified: qualified_of(&result.summary),
            turns: None,
        }
    }

    /// Creates a published system. Its figures get the place of the baseline, if it has only one.
    pub(super) fn published(published: &Published, place: &str) -> Self {
        let placed = |figure: &Figure| match figure.place.is_empty() {
            true => Figure { place: place.to_owned(), ..figure.clone() },
            false => figure.clone(),
        };
        Self {
            name: published.name.clone(),
            results: Vec::new(),
            place: None,
            created: published.year.map_or_else(String::new, |year| year.to_string()),
            tool_version: None,
            machines: Vec::new(),
            published: Some(published.source.clone()),
            workload: String::new(),
            plan: Value::Null,
            environment: Value::Null,
            loads: Vec::new(),
            figures: published.figures.iter().map(placed).collect(),
            qualified: Vec::new(),
            turns: None,
        }
    }

    /// Distinct places.
    pub(super) fn places(&self) -> Vec<String> {
        let mut places: Vec<String> = Vec::new();
        for figure in &self.figures {
            if !figure.place.is_empty() && !places.contains(&figure.place) {
                places.push(figure.place.clone());
            }
        }
        places
    }
}

/// Systems of the candidates.
pub(super) fn of(candidates: &[Candidate], notes: &mut Vec<String>) -> Result<Vec<System>, CompareError> {
    let mut systems = Vec::new();
    for (number, candidate) in candidates.iter().enumerate() {
        let Some((first, others)) = candidate.results.split_first() else { continue };
        let mut system = System::new(&candidate.name, first);
        for result in others {
            pool(&mut system, &candidate.name, result)?;
        }
        for result in candidate.results.iter().filter(|result| result.is_rebuilt) {
            let path = result.path.display();
            notes.push(format!("{path} was interrupted: only finished runs are compared"));
        }
        for result in candidate.results.iter().filter(|result| !result.is_checked && !result.is_rebuilt) {
            notes.push(format!("{} has no checksum: a change would not be found", result.path.display()));
        }
        let parts = match &first.summary {
            Stored::Campaign(campaign) if others.is_empty() => cells_of(&system, campaign, number),
            _ if candidates.len() == 1 => places_of(&system, number),
            _ => vec![system],
        };
        systems.extend(parts);
    }
    for (n, system) in systems.iter().enumerate() {
        if systems[..n].iter().any(|other| other.name == system.name) {
            return Err(CompareError::SameName { name: system.name.clone() });
        }
    }
    if systems.is_empty() { Err(CompareError::Nothing) } else { Ok(systems) }
}

/// Adds the values of another result.
fn pool(system: &mut System, name: &str, result: &StoredResult) -> Result<(), CompareError> {
    let more = System::new(name, result);
    if more.workload != system.workload {
        return Err(CompareError::DifferentWorkloads {
            first: system.results[0].clone(),
            first_workload: system.workload.clone(),
            second: more.results[0].clone(),
            second_workload: more.workload,
        });
    }
    system.results.extend(more.results);
    let is_new = |machine: &String| !system.machines.contains(machine);
    let machines: Vec<String> = more.machines.into_iter().filter(is_new).collect();
    system.machines.extend(machines);
    system.qualified.extend(more.qualified);
    system.figures = Figure::pooled(std::mem::take(&mut system.figures).into_iter().chain(more.figures));
    Ok(())
}

/// Places of a result as systems, which were measured alternately.
fn places_of(system: &System, set: usize) -> Vec<System> {
    let places = system.places();
    if places.len() < 2 {
        return vec![system.clone()];
    }
    let of_place = |place: &String| {
        let figures = system.figures.iter().filter(|figure| figure.place == *place);
        System {
            name: place.clone(),
            place: Some(place.clone()),
            figures: figures.cloned().collect(),
            // Found on all volumes together.
            qualified: Vec::new(),
            turns: Some(set),
            ..system.clone()
        }
    };
    places.iter().map(of_place).collect()
}

/// Cells of a campaign as systems, which were measured alternately.
fn cells_of(system: &System, campaign: &CampaignSummary, set: usize) -> Vec<System> {
    let measured = campaign.cells.iter().filter(|cell| !cell.figures.is_empty());
    let of_cell = |cell: &keepup_results::CampaignCell| {
        System {
            name: cell.name(&campaign.axes),
            plan: serde_json::to_value(&cell.coordinates).unwrap_or_default(),
            // An axis may vary the test.
            workload: words_of(&cell.command),
            figures: cell.figures.clone(),
            turns: Some(set),
            ..system.clone()
        }
    };
    measured.map(of_cell).collect()
}

/// Verb of a command, without flags.
fn words_of(command: &str) -> String {
    let words = command.split(' ').skip(1).take_while(|word| !word.starts_with('-'));
    words.collect::<Vec<_>>().join(" ")
}

/// Both ends of the qualified rate of a qualification.
fn qualified_of(summary: &Stored) -> Vec<Option<Ends>> {
    let (held, failed) = match summary {
        Stored::Qualify(summary) => (summary.qualified_bytes_per_second, &summary.failed_above),
        Stored::QualifyFleet(summary) => (summary.qualified_bytes_per_second, &summary.failed_above),
        _ => return Vec::new(),
    };
    vec![held.map(|held| (held, failed.as_ref().map(|failed| failed.bytes_per_second)))]
}

/// Distinct background loads of a result.
fn loads_of(summary: &Stored) -> Vec<String> {
    let mut loads: Vec<String> = match summary {
        Stored::Qualify(summary) => summary.loads.iter().map(|load| load.session.spec.clone()).collect(),
        Stored::Disk(summary) => {
            summary.runs.iter().flat_map(|run| &run.loads).map(|load| load.spec.clone()).collect()
        }
        Stored::Net(summary) => {
            summary.runs.iter().flat_map(|run| &run.loads).map(|load| load.spec.clone()).collect()
        }
        Stored::Record(summary) => {
            summary.runs.iter().flat_map(|run| &run.loads).map(|load| load.spec.clone()).collect()
        }
        Stored::Soak(summary) => summary.loads.iter().map(|load| load.spec.clone()).collect(),
        // Places of a replay name their loads; registers and fleets have none.
        Stored::Replay(_)
        | Stored::QualifyFleet(_)
        | Stored::Register(_)
        | Stored::Campaign(_)
        | Stored::Compare(_)
        | Stored::Predict(_) => Vec::new(),
    };
    loads.sort();
    loads.dedup();
    loads
}

/// Common test of all systems.
pub(super) fn one_workload(systems: &[System]) -> Result<String, CompareError> {
    let first = &systems[0];
    match systems.iter().find(|system| system.workload != first.workload) {
        None => Ok(first.workload.clone()),
        Some(other) => Err(CompareError::DifferentWorkloads {
            first: first.name.clone(),
            first_workload: first.workload.clone(),
            second: other.name.clone(),
            second_workload: other.workload.clone(),
        }),
    }
}

/// Moves the baseline to the front.
pub(super) fn put_first(systems: &mut Vec<System>, baseline: Option<&str>) -> Result<(), CompareError> {
    let Some(name) = baseline else { return Ok(()) };
    let Some(at) = systems.iter().position(|system| system.name == name) else {
        let known = systems.iter().map(|system| system.name.clone()).collect();
        return Err(CompareError::NoSuchBaseline { name: name.to_owned(), known });
    };
    let baseline = systems.remove(at);
    systems.insert(0, baseline);
    Ok(())
}
