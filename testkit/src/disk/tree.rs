//! In-memory file tree addressed by inode number. Pure.
//!
//! A removed file keeps its number and content until the server ends, because it may be open.
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use fuser::Errno;

/// A node.
#[derive(Debug)]
pub(super) enum Node {
    File(Vec<u8>),
    Directory(BTreeMap<OsString, u64>),
}

impl Node {
    pub(super) fn empty_directory() -> Self {
        Self::Directory(BTreeMap::new())
    }

    fn is_full_directory(&self) -> bool {
        matches!(self, Self::Directory(entries) if !entries.is_empty())
    }
}

/// All nodes; a node's number is its index.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    pub(super) fn new() -> Self {
        // The root directory is inode 1; 0 is unused.
        Self { nodes: vec![Node::empty_directory(), Node::empty_directory()] }
    }

    pub(super) fn node(&self, number: u64) -> Result<&Node, Errno> {
        usize::try_from(number).ok().and_then(|at| self.nodes.get(at)).ok_or(Errno::ENOENT)
    }

    fn node_mut(&mut self, number: u64) -> Result<&mut Node, Errno> {
        usize::try_from(number).ok().and_then(|at| self.nodes.get_mut(at)).ok_or(Errno::ENOENT)
    }

    pub(super) fn entries(&self, number: u64) -> Result<&BTreeMap<OsString, u64>, Errno> {
        match self.node(number)? {
            Node::Directory(entries) => Ok(entries),
            Node::File(_) => Err(Errno::ENOTDIR),
        }
    }

    fn entries_mut(&mut self, number: u64) -> Result<&mut BTreeMap<OsString, u64>, Errno> {
        match self.node_mut(number)? {
            Node::Directory(entries) => Ok(entries),
            Node::File(_) => Err(Errno::ENOTDIR),
        }
    }

    pub(super) fn bytes(&self, number: u64) -> Result<&[u8], Errno> {
        match self.node(number)? {
            Node::File(bytes) => Ok(bytes),
            Node::Directory(_) => Err(Errno::EISDIR),
        }
    }

    fn bytes_mut(&mut self, number: u64) -> Result<&mut Vec<u8>, Errno> {
        match self.node_mut(number)? {
            Node::File(bytes) => Ok(bytes),
            Node::Directory(_) => Err(Errno::EISDIR),
        }
    }

    pub(super) fn lookup(&self, parent: u64, name: &OsStr) -> Result<u64, Errno> {
        self.entries(parent)?.get(name).copied().ok_or(Errno::ENOENT)
    }

    /// Name of a node; empty for a removed one.
    pub(super) fn name(&self, number: u64) -> &OsStr {
        let entries = self.nodes.iter().filter_map(|node| match node {
            Node::Directory(entries) => Some(entries),
            Node::File(_) => None,
        });
        let found = entries.flatten().find(|(_, node)| **node == number);
        found.map_or(OsStr::new(""), |(name, _)| name)
    }

    pub(super) fn add(&mut self, parent: u64, name: &OsStr, node: Node) -> Result<u64, Errno> {
        let number = self.nodes.len() as u64;
        let entries = self.entries_mut(parent)?;
        if entries.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        entries.insert(name.to_owned(), number);
        self.nodes.push(node);
        Ok(number)
    }

    /// Removes a name; a directory must be empty.
    pub(super) fn remove(&mut self, parent: u64, name: &OsStr) -> Result<(), Errno> {
        let number = self.lookup(parent, name)?;
        if self.node(number)?.is_full_directory() {
            return Err(Errno::ENOTEMPTY);
        }
        self.entries_mut(parent)?.remove(name);
        Ok(())
    }

    /// Renames a node, replacing the target.
    pub(super) fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) -> Result<(), Errno> {
        let number = self.lookup(from.0, from.1)?;
        if let Some(&replaced) = self.entries(to.0)?.get(to.1)
            && replaced != number
            && self.node(replaced)?.is_full_directory()
        {
            return Err(Errno::ENOTEMPTY);
        }
        self.entries_mut(from.0)?.remove(from.1);
        self.entries_mut(to.0)?.insert(to.1.to_owned(), number);
        Ok(())
    }

    /// At most `bytes` of a file from `offset`.
    pub(super) fn read(&self, number: u64, offset: u64, bytes: usize) -> Result<&[u8], Errno> {
        let all = self.bytes(number)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
        Ok(&all[from..from.saturating_add(bytes).min(all.len())])
    }

    pub(super) fn write(&mut self, number: u64, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let all = self.bytes_mut(number)?;
        let from = usize::try_from(offset).map_err(|_| Errno::EFBIG)?;
        let end = from.checked_add(data.len()).ok_or(Errno::EFBIG)?;
        if all.len() < end {
            all.resize(end, 0);
        }
        all[from..end].copy_from_slice(data);
        Ok(())
    }

    pub(super) fn resize(&mut self, number: u64, bytes: u64) -> Result<(), Errno> {
        let bytes = usize::try_from(bytes).map_err(|_| Errno::EFBIG)?;
        self.bytes_mut(number)?.resize(bytes, 0);
        Ok(())
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
