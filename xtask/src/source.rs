//! Text files of the workspace.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::lexer::strip;

/// Extensions of the files that are read.
const ENDINGS: [&str; 7] = ["rs", "md", "toml", "yml", "yaml", "json", "sh"];
/// Directories without sources.
const SKIPPED: [&str; 3] = ["target", "corpus", "artifacts"];

/// Text file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Path in the workspace, with `/`.
    pub(crate) path: String,
    /// Text.
    pub(crate) text: String,
    /// Rust only, otherwise empty: text with comments and literals blanked out.
    pub(crate) code: String,
}

impl SourceFile {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = if path.ends_with(".rs") { strip(text) } else { String::new() };
        Self { path: path.to_owned(), text: text.to_owned(), code }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the file is only compiled for tests, fuzzing or benchmarks.
    pub(crate) fn is_test(&self) -> bool {
        let folders: Vec<&str> = self.path.split('/').collect();
        self.path.ends_with("_tests.rs")
            || self.path.starts_with("testkit/")
            || folders.iter().any(|folder| ["tests", "benches", "fuzz"].contains(folder))
    }
}

/// All text files below the root, sorted by path.
pub(crate) fn read_all(root: &Path) -> Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    walk(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(root: &Path, folder: &str, files: &mut Vec<SourceFile>) -> Result<()> {
    let directory = root.join(folder);
    let entries = fs::read_dir(&directory).with_context(|| format!("list {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        // Does not follow links.
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
            walk(root, &path, files)?;
        } else if kind.is_file() && ENDINGS.contains(&name.rsplit('.').next().unwrap_or_default()) {
            let text = fs::read_to_string(entry.path()).with_context(|| format!("read {path}"))?;
            files.push(SourceFile::new(&path, &text));
        }
    }
    Ok(())
}
