//! The cells of a campaign: every combination of values with its command, and what it is compared with.
use std::collections::{BTreeMap, BTreeSet};

use crate::plan::{AxisValue, Campaign, Settings};

/// One combination of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Its number, from 1.
    pub number: u32,
    /// Which value it has on each axis.
    pub values: Vec<usize>,
    /// The command's words, without the program.
    pub arguments: Vec<String>,
    /// Why it is left out, where it is.
    pub skipped: Option<String>,
    /// Number of the cell that it is compared with, where there is another.
    pub baseline: Option<u32>,
    /// Axes in which it differs from that.
    pub changed: Vec<String>,
    /// Settings in which it differs from that.
    pub settings: Vec<String>,
    /// Numbers of the cells that change one of several axes alone.
    pub alone: Vec<u32>,
}

impl Cell {
    /// Whether no ratio tells which of its changes did it.
    #[must_use]
    pub(crate) fn is_confounded(&self) -> bool {
        self.changed.len() > 1 || self.settings.len() > 1
    }

    /// The command as one would type it.
    #[must_use]
    pub fn command(&self) -> String {
        let words = self.arguments.iter().map(|argument| quoted(argument));
        std::iter::once("keepup".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

impl Campaign {
    /// All cells, the first axis the slowest.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let count: usize = self.axes.iter().map(|axis| axis.values.len()).product();
        (0..count).map(|n| self.cell(self.values_at(n))).collect()
    }

    /// Labels of a cell by axis.
    #[must_use]
    pub fn coordinates(&self, cell: &Cell) -> BTreeMap<String, String> {
        let labels = self.chosen(&cell.values).map(|value| value.label.clone());
        self.axes.iter().map(|axis| axis.name.clone()).zip(labels).collect()
    }

    /// What a cell is called: its labels, the slowest axis first.
    #[must_use]
    pub fn name_of(&self, cell: &Cell) -> String {
        let labels = self.chosen(&cell.values).map(|value| value.label.as_str());
        labels.collect::<Vec<_>>().join(", ")
    }

    /// The values of the cell with the index `n`.
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

    /// The number of the cell that has these values; the reverse of [`Self::values_at`].
    fn number(&self, values: &[usize]) -> u32 {
        let steps = self.axes.iter().zip(values);
        let index = steps.fold(0, |index, (axis, value)| index * axis.values.len() + value);
        u32::try_from(index + 1).unwrap_or(u32::MAX)
    }

    fn chosen<'a>(&'a self, values: &'a [usize]) -> impl Iterator<Item = &'a AxisValue> {
        self.axes.iter().zip(values).filter_map(|(axis, value)| axis.values.get(*value))
    }

    fn cell(&self, values: Vec<usize>) -> Cell {
        let mut cell = Cell {
            number: self.number(&values),
            arguments: arguments(&self.settings(&values)),
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

    /// Everything that is set with these values.
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

    /// Finds what the cell is compared with, and in what they differ.
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

/// A word of a command, quoted where a shell would need it.
#[must_use]
pub fn quoted(argument: &str) -> String {
    let is_plain = argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c));
    match is_plain && !argument.is_empty() {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    }
}

/// The words of a command: its verb, what it is told without flags, then its flags.
fn arguments(settings: &Settings) -> Vec<String> {
    let words = |key: &str| settings.get(key).into_iter().flatten().cloned();
    let mut arguments: Vec<String> = words("verb").chain(words("args")).collect();
    for (key, values) in settings.iter().filter(|(key, _)| !["verb", "args"].contains(&key.as_str())) {
        let flag = format!("--{key}");
        if values.is_empty() {
            arguments.push(flag.clone());
        }
        for value in values {
            // A value that looks like a flag is tied to its own.
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
