//! Links in documents, and paths on the map pages, must exist in the workspace. Web links are not checked.

use std::path::Path;

use crate::source::SourceFile;
use crate::violation::Violation;

/// Pages whose paths in backticks are checked too.
const MAPS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

pub(crate) fn check(root: &Path, files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (line, target) in targets(&file.text) {
            let path = target.split(['#', '?']).next().unwrap_or_default();
            let base = if path.starts_with('/') { root.to_path_buf() } else { root.join(folder) };
            if !base.join(path.trim_start_matches('/')).exists() {
                let advice = format!("`{target}` does not exist; correct or remove the link");
                found.push(Violation { file: file.path.clone(), line, rule: "link", advice });
            }
        }
        if MAPS.contains(&file.path.as_str()) {
            found.extend(missing_paths(root, file, files));
        }
    }
    found
}

/// Paths in backticks that neither exist below the root nor end any file path.
fn missing_paths(root: &Path, page: &SourceFile, files: &[SourceFile]) -> Vec<Violation> {
    let exists = |path: &str| {
        let suffix = format!("/{path}");
        root.join(path).exists() || files.iter().any(|file| file.path.ends_with(&suffix))
    };
    paths(&page.text)
        .into_iter()
        .filter(|(_, path)| !exists(path))
        .map(|(line, path)| Violation {
            file: page.path.clone(),
            line,
            rule: "path",
            advice: format!("`{path}` does not exist; correct or remove it"),
        })
        .collect()
}

/// Paths in backticks with their lines: texts with a folder that end in a known extension or a slash.
/// Excludes placeholders in capitals and build outputs in `target/`.
fn paths(text: &str) -> Vec<(usize, &str)> {
    let paths = |(number, line)| {
        let quoted = str::split(line, '`').skip(1).step_by(2);
        quoted.filter(|quoted| is_path(quoted)).map(move |path| (number, path))
    };
    prose(text).flat_map(paths).collect()
}

/// Lines outside of fenced code, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

fn is_path(quoted: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._-".contains(c);
    let is_file = [".rs", ".md", ".toml", ".json", ".py", ".sh", "/"].iter().any(|end| quoted.ends_with(end));
    let has_folder = quoted.trim_end_matches('/').contains('/');
    is_file
        && has_folder
        && quoted.chars().all(plain)
        && !quoted.starts_with(['.', '/'])
        && !quoted.starts_with("target/")
}

/// Targets of links within the workspace with their lines, outside of code.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let inline = line.match_indices("](").filter(|(at, _)| !in_code(line, *at));
        let inline = inline.filter_map(|(at, _)| line[at + 2..].split([')', ' ']).next());
        let reference = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        let reference = reference.map(|(_, target)| target.trim());
        found
            .extend(inline.chain(reference).filter(|target| is_local(target)).map(|target| (number, target)));
    }
    found
}

/// Whether an odd number of backticks precedes this position.
fn in_code(line: &str, at: usize) -> bool {
    line[..at].matches('`').count() % 2 == 1
}

fn is_local(target: &str) -> bool {
    !target.is_empty()
        && !target.starts_with(['#', '<'])
        && !target.contains("://")
        && !target.starts_with("mailto:")
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
