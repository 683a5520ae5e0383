//! Links in documents: each leads to a file of the workspace. Links to the web are not followed.

use std::path::Path;

use crate::source::SourceFile;
use crate::tidy::Violation;

pub(crate) fn check(root: &Path, files: &[SourceFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (line, target) in targets(&file.text) {
            let path = target.split(['#', '?']).next().unwrap_or_default();
            let base = if path.starts_with('/') { root.to_path_buf() } else { root.join(folder) };
            if !base.join(path.trim_start_matches('/')).exists() {
                let advice = format!("`{target}` leads nowhere; correct or remove the link");
                found.push(Violation { file: file.path.clone(), line, rule: "link", advice });
            }
        }
    }
    found
}

/// Targets of links within the workspace, with their lines; code is not looked at.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let inline = line.match_indices("](").filter(|(at, _)| !in_code(line, *at));
            let inline = inline.filter_map(|(at, _)| line[at + 2..].split([')', ' ']).next());
            let reference = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
            let reference = reference.map(|(_, target)| target.trim());
            found.extend(
                inline.chain(reference).filter(|target| is_local(target)).map(|target| (number, target)),
            );
        }
    }
    found
}

/// Whether an odd number of back-quotes stands before this place.
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
