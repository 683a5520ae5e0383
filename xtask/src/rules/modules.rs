//! Rule on the modules of a crate: no circles.
//!
//! Sibling modules must not use each other in a circle; what a module's descendants use counts for it. A
//! parent and its children may use each other. Re-exports are followed to the module that defines the name.
//!
//! Paths are read from the text: those that start with `crate`, `self` or `super`. Macros are not expanded.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::SourceFile;
use crate::violation::Violation;

/// Longest chain of re-exports that is followed.
const REEXPORTS_MAX: usize = 8;

/// Path of a module below its crate.
type Module = Vec<String>;

pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        if let Some(root) = root_of(&file.path) {
            crates.entry(root).or_default().push(file);
        }
    }
    crates.iter().flat_map(|(root, files)| circles(root, files)).collect()
}

/// Folder of the crate that a file belongs to.
fn root_of(path: &str) -> Option<&str> {
    let mut ends = path.match_indices('/').map(|(at, _)| at);
    let first = ends.next()?;
    match &path[..first] {
        "crates" => Some(&path[..ends.next()?]),
        "testkit" | "xtask" => Some(&path[..first]),
        _ => None,
    }
}

fn violation(file: &str, rule: &'static str, advice: String) -> Violation {
    Violation { file: file.to_owned(), line: 1, rule, advice }
}

/// Modules of one crate without those for tests.
struct Crate<'a> {
    files: BTreeMap<Module, &'a SourceFile>,
    /// Names that a module re-exports, with the path that each stands for.
    reexports: BTreeMap<(Module, String), Vec<String>>,
}

fn circles(root: &str, files: &[&SourceFile]) -> Vec<Violation> {
    let found = Crate::new(root, files);
    // Siblings that use each other, below each parent.
    let mut uses: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (module, file) in &found.files {
        for path in paths(&file.code) {
            let target = found.resolve(module, &path.segments);
            let shared = module.iter().zip(&target).take_while(|(own, other)| own == other).count();
            if let (Some(own), Some(other)) = (module.get(shared), target.get(shared)) {
                let siblings = uses.entry(module[..shared].to_vec()).or_default();
                siblings.entry(own.clone()).or_default().insert(other.clone());
            }
        }
    }
    uses.iter()
        .flat_map(|(parent, uses)| cycles(uses).into_iter().map(move |cycle| (parent, cycle)))
        .map(|(parent, cycle)| {
            let names = cycle.join(", ");
            let advice =
                format!("these use each other in a circle: {names}; move what they share below them");
            let file = match found.files.get(parent) {
                Some(file) => file.path.as_str(),
                None => root,
            };
            violation(file, "module-circle", advice)
        })
        .collect()
}

impl<'a> Crate<'a> {
    fn new(root: &str, files: &[&'a SourceFile]) -> Self {
        let mut modules = BTreeMap::new();
        for file in files.iter().filter(|file| !file.is_test()) {
            if let Some(module) = module_of(root, &file.path) {
                modules.insert(module, *file);
            }
        }
        let tests: Vec<Module> =
            modules.iter().flat_map(|(module, file)| test_modules(module, &file.code)).collect();
        modules.retain(|module, _| {
            let in_tests = module.iter().any(|name| name.ends_with("_tests"));
            !in_tests && !tests.iter().any(|test| module.starts_with(test))
        });
        let mut reexports = BTreeMap::new();
        for (module, file) in &modules {
            for path in paths(&file.code).into_iter().filter(|path| path.is_public) {
                if let Some(name) = path.alias.clone().or_else(|| path.segments.last().cloned()) {
                    reexports.insert((module.clone(), name), path.segments);
                }
            }
        }
        Self { files: modules, reexports }
    }

    /// Module that defines what `path` in `from` names: its longest prefix that is one, through re-exports.
    fn resolve(&self, from: &Module, path: &[String]) -> Module {
        let (mut base, mut rest) = absolute(from, path);
        for _ in 0..REEXPORTS_MAX {
            while let Some(next) = rest.first() {
                let deeper: Module = base.iter().chain([next]).cloned().collect();
                if !self.files.contains_key(&deeper) {
                    break;
                }
                base = deeper;
                rest.remove(0);
            }
            let Some(name) = rest.first() else { return base };
            let Some(stands_for) = self.reexports.get(&(base.clone(), name.clone())) else { return base };
            let (next, mut longer) = absolute(&base, stands_for);
            longer.extend(rest.drain(1..));
            (base, rest) = (next, longer);
        }
        base
    }
}

/// Module at the start of a path, and the segments after it.
fn absolute(from: &Module, path: &[String]) -> (Module, Vec<String>) {
    let mut base = from.clone();
    let mut segments = path.iter();
    let mut rest = Vec::new();
    for segment in segments.by_ref() {
        match segment.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => drop(base.pop()),
            _ => {
                rest.push(segment.clone());
                break;
            }
        }
    }
    rest.extend(segments.cloned());
    (base, rest)
}

/// Module in the file at `path`; none outside of the crate's sources.
fn module_of(root: &str, path: &str) -> Option<Module> {
    let inner = path.strip_prefix(root)?.strip_prefix("/src/")?.strip_suffix(".rs")?;
    let module: Module = inner.split('/').map(str::to_owned).collect();
    Some(if ["lib", "main"].contains(&inner) { Vec::new() } else { module })
}

/// Modules that are declared for tests only.
fn test_modules(module: &Module, code: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for (at, mark) in code.match_indices("#[cfg(test)]") {
        let mut rest = code[at + mark.len()..].trim_start();
        while let Some(after) = rest.strip_prefix("#[") {
            rest = after.split_once(']').map_or("", |(_, after)| after).trim_start();
        }
        let rest = ["pub(crate) ", "pub(super) ", "pub "]
            .iter()
            .fold(rest, |rest, public| rest.strip_prefix(public).unwrap_or(rest));
        if let Some(name) = rest.strip_prefix("mod ").and_then(|rest| rest.split_once(';')) {
            found.push(module.iter().cloned().chain([name.0.trim().to_owned()]).collect());
        }
    }
    found
}

/// Path in the source.
struct SourcePath {
    segments: Vec<String>,
    /// New name, in a `use`.
    alias: Option<String>,
    /// Whether it is a `use` that others see.
    is_public: bool,
}

/// Paths that start with `crate`, `self` or `super`, and all of a public `use`.
fn paths(code: &str) -> Vec<SourcePath> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((start, word)) = next_word(code, at) {
        at = start + word.len();
        if word == "use" {
            let statement = code[..start].rsplit([';', '{', '}', ']']).next().unwrap_or_default();
            let is_public = statement.trim_start().starts_with("pub");
            let end = code[at..].find(';').map_or(code.len(), |end| at + end);
            tree(&code[at..end], &[], is_public, &mut found);
            at = end;
        } else if is_root(word) && code[at..].starts_with("::") && !code[..start].ends_with("::") {
            let end = code[at..].find(|c: char| !is_part(c) && c != ':').map_or(code.len(), |end| at + end);
            let segments =
                code[start..end].split("::").map(str::to_owned).filter(|s| !s.is_empty()).collect();
            found.push(SourcePath { segments, alias: None, is_public: false });
            at = end;
        }
    }
    found.retain(|path| path.is_public || path.segments.first().is_some_and(|first| is_root(first)));
    found
}

fn is_root(segment: &str) -> bool {
    ["crate", "self", "super"].contains(&segment)
}

/// Adds every path of a `use` tree.
fn tree(text: &str, prefix: &[String], is_public: bool, found: &mut Vec<SourcePath>) {
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    let (head, group) = match text.split_once('{') {
        Some((head, group)) => (head, Some(group.strip_suffix('}').unwrap_or(group))),
        None => (text, None),
    };
    let (head, alias) = match head.split_once(" as ") {
        Some((head, alias)) => (head, Some(alias.trim().to_owned())),
        None => (head, None),
    };
    let mut segments = prefix.to_vec();
    segments.extend(head.split("::").map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()));
    let Some(group) = group else {
        // `a::{self}` names `a`.
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        return found.push(SourcePath { segments, alias, is_public });
    };
    let (mut depth, mut start) = (0usize, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                tree(&group[start..at], &segments, is_public, found);
                start = at + 1;
            }
            _ => {}
        }
    }
    tree(&group[start..], &segments, is_public, found);
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Next word at or after `from`, and where it starts.
fn next_word(code: &str, from: usize) -> Option<(usize, &str)> {
    let start = from + code[from..].find(is_part)?;
    let length = code[start..].find(|c: char| !is_part(c)).unwrap_or(code.len() - start);
    Some((start, &code[start..start + length]))
}

/// Groups of two or more names that reach each other.
fn cycles(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reach = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(name) = waiting.pop() {
            waiting.extend(uses.get(name).into_iter().flatten().filter(|next| seen.insert((*next).clone())));
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = uses.keys().map(|name| (name, reach(name))).collect();
    let mut groups = BTreeSet::new();
    for (name, others) in &reached {
        let back = |other: &&String| reached.get(other).is_some_and(|reached| reached.contains(*name));
        let mut group: Vec<String> = others.iter().filter(back).cloned().collect();
        group.sort();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

#[cfg(test)]
#[path = "modules_tests.rs"]
mod tests;
