//! Validity checks of a machine.

use std::collections::BTreeMap;

use keepup_error::Cause;
use keepup_plan::close_names;

use super::{BesideSpec, Machine, PathSpec, StageSpec, WindowSpec};
use crate::error::Fault;
use crate::part::Part;
use crate::ranged::Ranged;
use crate::system::Currency;
use crate::unit::Dimension;

/// Maximum count of a resource, and of machines.
pub(super) const COUNT_MAX: u32 = 1_000_000;
/// Setting for the number of machines.
pub(super) const HOSTS: &str = "hosts";
/// Maximum number of crossings of a resource.
const TIMES_MAX: f64 = 1e6;
/// Maximum nesting depth of paths.
const DEPTH_MAX: usize = 16;
/// Maximum number of included paths, directly or indirectly.
const PATHS_MAX: usize = 256;

type Parts = BTreeMap<String, (Part, Currency)>;

impl Machine {
    /// First error of a machine.
    pub(super) fn fault(&self) -> Result<(), Fault> {
        count("hosts", self.hosts)?;
        if !self.path.contains_key(&self.main) {
            return Err(unknown("main", "path", &self.main, self.path.keys()));
        }
        let mut parts = Parts::new();
        for (name, spec) in &self.resource {
            let key = format!("resource.{name}");
            plain_name(&key, name)?;
            let inside = |fault: Fault| {
                let inner = if fault.key.is_empty() { String::new() } else { format!(".{}", fault.key) };
                Fault::new(format!("{key}{inner}"), fault.reason)
            };
            let part = spec.part(name).map_err(inside)?;
            count(&format!("{key}.count"), spec.count)?;
            if !spec.layout.takes(spec.count) {
                let reason = format!("{:?} cannot be made of {}", spec.layout, spec.count).to_lowercase();
                return Err(Fault::new(format!("{key}.layout"), reason));
            }
            let capability =
                part.capability(&mut |figure| figure.value).map_err(|why| Fault::new(&*key, why))?;
            parts.insert(name.clone(), (part, capability.currency));
        }
        for (name, path) in &self.path {
            plain_name(&format!("path.{name}"), name)?;
            self.path_fault(name, path, &parts)?;
        }
        let mut known = BTreeMap::new();
        for name in self.path.keys() {
            self.nested(name, &mut Vec::new(), &mut known)?;
        }
        for (name, beside) in &self.beside {
            self.beside_fault(name, beside)?;
        }
        Ok(())
    }

    fn path_fault(&self, name: &str, path: &PathSpec, parts: &Parts) -> Result<(), Fault> {
        let key = format!("path.{name}");
        if path.stages.is_empty() && path.includes.is_empty() {
            return Err(Fault::new(key, "empty path: no stage and no included path"));
        }
        if let Some(operation) = &path.operation {
            figure(&format!("{key}.operation"), "operation", operation, &[Dimension::Bytes])?;
            above_zero(&format!("{key}.operation"), operation)?;
        }
        for included in &path.includes {
            if !self.path.contains_key(included) {
                return Err(unknown(&format!("{key}.includes"), "path", included, self.path.keys()));
            }
        }
        for (number, stage) in path.stages.iter().enumerate() {
            let key = format!("{key}.stage.{}", number + 1);
            let Some((part, currency)) = parts.get(&stage.on) else {
                return Err(unknown(&format!("{key}.on"), "resource", &stage.on, parts.keys()));
            };
            if let Some(disks) = stage.crosses.as_ref().filter(|disks| !parts.contains_key(*disks)) {
                return Err(unknown(&format!("{key}.crosses"), "resource", disks, parts.keys()));
            }
            stage_fault(&key, stage, part, *currency)?;
        }
        Ok(())
    }

    /// Follows the included paths, reached through `seen`; returns their number with repetitions.
    fn nested<'a>(
        &'a self,
        name: &'a str,
        seen: &mut Vec<&'a str>,
        known: &mut BTreeMap<&'a str, usize>,
    ) -> Result<usize, Fault> {
        if let Some(paths) = known.get(name) {
            return Ok(*paths);
        }
        let refuse = |reason: String| {
            let outer = seen.last().copied().unwrap_or(name);
            Err(Fault::new(format!("path.{outer}.includes"), reason))
        };
        if let Some(start) = seen.iter().position(|known| *known == name) {
            return refuse(format!("a path cannot include itself: {} -> {name}", seen[start..].join(" -> ")));
        }
        if seen.len() == DEPTH_MAX {
            return refuse(format!("paths nested deeper than {DEPTH_MAX}"));
        }
        seen.push(name);
        let mut paths = 1;
        for included in self.path.get(name).iter().flat_map(|path| &path.includes) {
            paths += self.nested(included, seen, known)?;
            if paths > PATHS_MAX {
                let reason = format!("includes more than {PATHS_MAX} paths");
                return Err(Fault::new(format!("path.{name}.includes"), reason));
            }
        }
        seen.pop();
        known.insert(name, paths);
        Ok(paths)
    }

    fn beside_fault(&self, name: &str, beside: &BesideSpec) -> Result<(), Fault> {
        let key = format!("beside.{name}");
        plain_name(&key, name)?;
        if self.resource.contains_key(name) {
            return Err(Fault::new(key, "duplicate name: a resource has it"));
        }
        let Some(path) = self.path.get(&beside.path) else {
            return Err(unknown(&format!("{key}.path"), "path", &beside.path, self.path.keys()));
        };
        if path.operation.is_none() {
            return Err(Fault::new(format!("{key}.path"), format!("path {} has no operation", beside.path)));
        }
        figure(&format!("{key}.rate"), "rate", &beside.rate, &[Dimension::BytesPerSecond])
    }
}

fn stage_fault(key: &str, stage: &StageSpec, part: &Part, currency: Currency) -> Result<(), Fault> {
    if !(stage.times > 0.0 && stage.times <= TIMES_MAX) {
        return Err(Fault::new(format!("{key}.times"), format!("must be above 0 and at most {TIMES_MAX}")));
    }
    let per_byte: &[Dimension] = match currency {
        Currency::Cycles => &[Dimension::CyclesPerByte, Dimension::SecondsPerByte],
        Currency::Seconds => &[Dimension::SecondsPerByte],
        Currency::Bytes | Currency::Operations => &[],
    };
    let per_operation: &[Dimension] = match currency {
        Currency::Cycles => &[Dimension::Cycles, Dimension::Seconds],
        Currency::Seconds => &[Dimension::Seconds],
        Currency::Bytes => &[Dimension::Bytes, Dimension::Seconds],
        Currency::Operations => &[Dimension::Count],
    };
    let at = |name: &str| format!("{key}.{name}");
    let costs =
        [("per_byte", &stage.per_byte, per_byte), ("per_operation", &stage.per_operation, per_operation)];
    for (name, cost, accepted) in costs {
        let Some(cost) = cost else { continue };
        if accepted.is_empty() {
            return Err(Fault::new(at(name), format!("part {} does not use it: try factor", part.name)));
        }
        figure(&at(name), &format!("{name} on {}", stage.on), cost, accepted)?;
    }
    if let Some(rate) = &stage.rate {
        if stage.per_byte.is_some() || currency != Currency::Seconds {
            let reason = "rate requires busy seconds, and excludes per_byte";
            return Err(Fault::new(at("rate"), reason));
        }
        figure(&at("rate"), "rate", rate, &[Dimension::BytesPerSecond])?;
        above_zero(&at("rate"), rate)?;
    }
    if let Some(factor) = &stage.factor {
        figure(&at("factor"), "factor", factor, &[Dimension::Count])?;
        above_zero(&at("factor"), factor)?;
    }
    if let Some(in_flight) = &stage.in_flight {
        figure(&at("in_flight"), "in_flight", in_flight, &[Dimension::Bytes])?;
        above_zero(&at("in_flight"), in_flight)?;
    }
    let capability = part.capability(&mut |figure| figure.value).map_err(|why| Fault::new(key, why))?;
    let says = [&stage.per_byte, &stage.per_operation, &stage.rate].iter().any(|cost| cost.is_some());
    if !says && capability.per_byte_read == 0.0 && capability.per_operation == 0.0 {
        let reason = Cause::new(format!("the cost per byte on {} is missing", stage.on));
        return Err(Fault::new(key, reason.with_hint("per_byte")));
    }
    if stage.random && capability.access_seconds == 0.0 && stage.crosses.is_none() {
        return Err(Fault::new(at("random"), format!("part {} has no access time", part.name)));
    }
    match &stage.window {
        Some(_) if currency != Currency::Bytes => {
            Err(Fault::new(at("window"), format!("part {} is not a bus", part.name)))
        }
        Some(window) => window_fault(&at("window"), window),
        None => Ok(()),
    }
}

fn window_fault(key: &str, window: &WindowSpec) -> Result<(), Fault> {
    for (name, value, dimension) in [
        ("outstanding", &window.outstanding, Dimension::Count),
        ("request", &window.request, Dimension::Bytes),
        ("round_trip", &window.round_trip, Dimension::Seconds),
    ] {
        figure(&format!("{key}.{name}"), name, value, &[dimension])?;
        above_zero(&format!("{key}.{name}"), value)?;
    }
    figure(&format!("{key}.behind"), "behind", &window.behind, &[Dimension::Bytes])
}

fn figure(key: &str, what: &str, figure: &Ranged, accepted: &[Dimension]) -> Result<(), Fault> {
    let dimension = figure.unit.dimension();
    if accepted.contains(&dimension) {
        return Ok(());
    }
    let wanted: Vec<&str> = accepted.iter().map(|dimension| dimension.example()).collect();
    Err(Fault::new(key, format!("{what} requires {}, got {}", wanted.join(" or "), figure.quantity())))
}

fn above_zero(key: &str, figure: &Ranged) -> Result<(), Fault> {
    if figure.low > 0.0 { Ok(()) } else { Err(Fault::new(key, "must be above 0")) }
}

pub(super) fn count(key: &str, count: u32) -> Result<(), Fault> {
    match count {
        1..=COUNT_MAX => Ok(()),
        _ => Err(Fault::new(key, format!("{count} is not between 1 and {COUNT_MAX}"))),
    }
}

/// Names are used in settings, `disks.rate=20MB/s`.
fn plain_name(key: &str, name: &str) -> Result<(), Fault> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name == HOSTS {
        return Err(Fault::new(key, "this name is reserved for the number of machines"));
    }
    if !name.is_empty() && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(Fault::new(key, "names consist of letters, digits, '-' and '_'"))
}

fn unknown<'a>(key: &str, what: &str, name: &str, known: impl Iterator<Item = &'a String>) -> Fault {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let close = close_names(name, known.iter().copied());
    let list = if close.is_empty() { known.join(", ") } else { close.join(", ") };
    let reason = Cause::new(format!("no {what} named {name:?}"));
    Fault::new(key, reason.with_hint(format!("use one of {list}")))
}
