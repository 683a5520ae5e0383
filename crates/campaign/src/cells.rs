//! Cells of a campaign: combinations of values with their commands and baselines.
use std::collections::{BTreeMap, BTreeSet};

use keepup_measure::sum::Sums;
use keepup_results::shell::quoted;

use crate::plan::{AxisValue, Campaign, Settings};

/// Combination of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Number, from 1.
    pub number: u32,
    /// Index of its value on each axis.
    pub values: Vec<usize>,
    /// Host of a fleet that runs it; none for this machine.
    pub host: Option<String>,
    /// Arguments of the command.
    pub arguments: Vec<String>,
    /// Reason why it is skipped, if it is.
    pub skipped: Option<String>,
    /// Number of its baseline cell, if another one.
    pub baseline: Option<u32>,
    /// Axes that differ from the baseline.
    pub changed: Vec<String>,
    /// Settings that differ from the baseline.
    pub settings: Vec<String>,
    /// Cells that change only one of the differing axes.
    pub alone: Vec<u32>,
}

impl Cell {
    /// Whether several changes contribute to its ratio.
    #[must_use]
    pub(crate) fn is_confounded(&self) -> bool {
        self.changed.len() > 1 || self.settings.len() > 1
    }

    /// Command line, after the host, if it has one: `daq1: keepup disk sweep`.
    #[must_use]
    pub fn command(&self) -> String {
        let host = self.host.iter().map(|host| format!("{host}:"));
        let words = self.arguments.iter().map(|argument| quoted(argument));
        host.chain(std::iter::once("keepup".to_owned())).chain(words).collect::<Vec<_>>().join(" ")
    }
}

impl Campaign {
    /// All cells, first axis slowest.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let count: usize = self.axes.iter().map(|axis| axis.values.len()).saturating_product();
        (0..count).map(|n| self.cell(self.values_at(n))).collect()
    }

    /// Labels of a cell by axis.
    #[must_use]
    pub fn coordinates(&self, cell: &Cell) -> BTreeMap<String, String> {
        let labels = self.chosen(&cell.values).map(|value| value.label.clone());
        self.axes.iter().map(|axis| axis.name.clone()).zip(labels).collect()
    }

    /// Name of a cell: its labels, slowest axis first.
    #[must_use]
    pub fn name_of(&self, cell: &Cell) -> String {
        let labels = self.chosen(&cell.values).map(|value| value.label.as_str());
        labels.collect::<Vec<_>>().join(", ")
    }

    /// Values of the cell with index `n`.
    fn values_at(&self, n: usize) -> Vec<usize> {
        let mut rest = n;
        let mut values: Vec<usize> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            values.push(rest % axis.values.len());
            rest /= axis.values.len();
        }
        values.reverse();
        values
    }

    /// Number of the cell with these values; inverse of [`Self::values_at`].
    fn number(&self, values: &[usize]) -> u32 {
        let steps = self.axes.iter().zip(values);
        let index = steps.fold(0, |index, (axis, value)| index * axis.values.len() + value);
        u32::try_from(index + 1).unwrap_or(u32::MAX)
    }

    fn chosen<'a>(&'a self, values: &'a [usize]) -> impl Iterator<Item = &'a AxisValue> {
        self.axes.iter().zip(values).filter_map(|(axis, value)| axis.values.get(*value))
    }

    fn cell(&self, values: Vec<usize>) -> Cell {
        let settings = self.settings(&values);
        let mut cell = Cell {
            number: self.number(&values),
            host: settings.get("host").and_then(|names| names.first()).cloned(),
            arguments: arguments(&settings),
            skipped: self.skipped(&values),
            values,
            baseline: None,
            changed: Vec::new(),
            settings: Vec::new(),
            alone: Vec::new(),
        };
        self.compare(&mut cell);
        cell
    }

    /// All settings of a cell with these values.
    fn settings(&self, values: &[usize]) -> Settings {
        let mut settings = self.run.clone();
        self.chosen(values).for_each(|value| settings.extend(value.settings.clone()));
        settings
    }

    fn skipped(&self, values: &[usize]) -> Option<String> {
        let has = |name: &String, label: &String| {
            let axes = self.axes.iter().zip(self.chosen(values));
            axes.into_iter().any(|(axis, value)| axis.name == *name && value.label == *label)
        };
        let skip = self.skip.iter().find(|skip| skip.when.iter().all(|(name, label)| has(name, label)));
        skip.map(|skip| skip.why.clone())
    }

    /// Finds the baseline of a cell and the differences.
    fn compare(&self, cell: &mut Cell) {
        let mut base = cell.values.clone();
        let mut changed = Vec::new();
        for (n, axis) in self.axes.iter().enumerate() {
            let Some(label) = self.baseline.get(&axis.name) else { continue };
            let Some(value) = axis.values.iter().position(|value| value.label == *label) else { continue };
            if base[n] != value {
                base[n] = value;
                changed.push(n);
            }
        }
        if changed.is_empty() {
            return;
        }
        let (own, other) = (self.settings(&cell.values), self.settings(&base));
        let keys: BTreeSet<&String> = own.keys().chain(other.keys()).collect();
        let differ = keys.into_iter().filter(|key| own.get(*key) != other.get(*key));
        cell.settings = differ.cloned().collect();
        cell.baseline = Some(self.number(&base));
        if changed.len() > 1 {
            let alone = |axis: &usize| {
                let mut values = base.clone();
                values[*axis] = cell.values[*axis];
                self.number(&values)
            };
            cell.alone = changed.iter().map(alone).collect();
        }
        cell.changed = changed.into_iter().map(|n| self.axes[n].name.clone()).collect();
    }
}

/// Arguments of a command: verb, positional arguments, flags.
fn arguments(settings: &Settings) -> Vec<String> {
    let words = |key: &str| settings.get(key).into_iter().flatten().cloned();
    let mut arguments: Vec<String> = words("verb").chain(words("args")).collect();
    for (key, values) in settings.iter().filter(|(key, _)| !["verb", "args", "host"].contains(&key.as_str()))
    {
        let flag = format!("--{key}");
        if values.is_empty() {
            arguments.push(flag.clone());
        }
        for value in values {
            // A value that looks like a flag must be part of the same argument.
            match value.starts_with('-') {
                true => arguments.push(format!("{flag}={value}")),
                false => arguments.extend([flag.clone(), value.clone()]),
            }
        }
    }
    arguments
}

#[cfg(test)]
#[path = "cells_tests.rs"]
mod tests;
