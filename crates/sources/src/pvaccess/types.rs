//! Types that a pvAccess server describes, and the cache of those that it refers to by number.
//!
//! Invariants: a type has at most [`NODES_MAX`] parts and [`HEIGHT_MAX`] levels, also where it refers to
//! cached types; the cache has at most [`CACHED_NODES_MAX`] parts.
use std::collections::BTreeMap;
use std::sync::Arc;

use keepup_stream::pvaccess::code::{ANY, BOOL, FLAG_ARRAY, NULL, STRUCTURE, TEXT, UNION};
use keepup_stream::pvaccess::{NUMBERS, Reader};
use keepup_stream::wire::ElementType;

use crate::error::DetectorError;

/// Most parts of a type.
const NODES_MAX: usize = 4096;
/// Most levels of a type.
const HEIGHT_MAX: usize = 20;
/// Most parts of all types in the cache.
const CACHED_NODES_MAX: usize = 1 << 16;
/// Longest name of a field or type.
const NAME_BYTES_MAX: usize = 256;

/// A type follows and gets a number.
const DEFINES: u8 = 0xFD;
/// Number of a type that was described before.
const REFERS: u8 = 0xFE;
/// Arrays of fixed or limited size, which no server uses.
const FLAG_FIXED: u8 = 0x10;

/// Type of a field.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) kind: Kind,
    /// Of a structure or union.
    pub(super) fields: Vec<(String, Arc<Type>)>,
    /// Name of a structure or union, such as `epics:nt/NTNDArray:1.0`.
    pub(super) id: String,
    /// Bits in the set of changed fields.
    pub(super) bits: usize,
    nodes: usize,
    height: usize,
}

/// What a type describes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar(Scalar),
    ScalarArray(Scalar),
    Structure,
    StructureArray(Arc<Type>),
    Union,
    UnionArray(Arc<Type>),
    /// A value that describes its own type.
    Any,
    AnyArray,
}

/// Type of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Bool,
    Number(ElementType),
    Text,
}

impl Scalar {
    fn of(code: u8) -> Option<Self> {
        let number = || NUMBERS.iter().find(|(_, known, _)| *known == code).map(|(.., element)| *element);
        match code {
            BOOL => Some(Self::Bool),
            TEXT => Some(Self::Text),
            _ => number().map(Self::Number),
        }
    }

    /// Type of the elements of an image; `None` for texts.
    pub(super) fn element(self) -> Option<ElementType> {
        match self {
            Self::Bool => Some(ElementType::U8),
            Self::Number(element) => Some(element),
            Self::Text => None,
        }
    }
}

impl Type {
    fn leaf(kind: Kind) -> Self {
        Self { kind, fields: Vec::new(), id: String::new(), bits: 1, nodes: 1, height: 1 }
    }

    fn array(kind: fn(Arc<Type>) -> Kind, element: Arc<Type>) -> Self {
        let (nodes, height) = (element.nodes + 1, element.height + 1);
        Self { nodes, height, ..Self::leaf(kind(element)) }
    }

    /// Type of a field.
    pub(super) fn field(&self, name: &str) -> Option<&Type> {
        self.fields.iter().find(|(found, _)| found == name).map(|(_, field)| &**field)
    }
}

/// Types of a connection by their numbers.
#[derive(Debug, Default)]
pub(super) struct Types {
    cached: BTreeMap<u16, Arc<Type>>,
    cached_nodes: usize,
}

impl Types {
    /// Reads the description of a type; `None` is the null type.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<Option<Arc<Type>>, DetectorError> {
        self.read_level(reader, HEIGHT_MAX)
    }

    fn read_level(
        &mut self,
        reader: &mut Reader<'_>,
        levels: usize,
    ) -> Result<Option<Arc<Type>>, DetectorError> {
        reader.step()?;
        let Some(below) = levels.checked_sub(1) else { return too_large() };
        let code = reader.u8()?;
        let read = match code {
            NULL => return Ok(None),
            DEFINES => {
                let number = reader.u16()?;
                let found = self.read_present(reader, below)?;
                return self.define(number, found).map(Some);
            }
            REFERS => {
                let number = reader.u16()?;
                let found = self.cached.get(&number).cloned();
                let found =
                    found.ok_or_else(|| DetectorError::Message(format!("type {number} is not known")))?;
                return if found.height <= levels { Ok(Some(found)) } else { too_large() };
            }
            _ if code & FLAG_FIXED != 0 => return unknown(code),
            STRUCTURE | UNION => self.read_fields(code, reader, below)?,
            ANY => Type::leaf(Kind::Any),
            code if code & FLAG_ARRAY != 0 => match code & !FLAG_ARRAY {
                STRUCTURE => self.read_array(STRUCTURE, reader, below)?,
                UNION => self.read_array(UNION, reader, below)?,
                ANY => Type::leaf(Kind::AnyArray),
                element => match Scalar::of(element) {
                    Some(scalar) => Type::leaf(Kind::ScalarArray(scalar)),
                    None => return unknown(code),
                },
            },
            code => match Scalar::of(code) {
                Some(scalar) => Type::leaf(Kind::Scalar(scalar)),
                None => return unknown(code),
            },
        };
        if read.nodes > NODES_MAX { too_large() } else { Ok(Some(Arc::new(read))) }
    }

    fn read_present(&mut self, reader: &mut Reader<'_>, levels: usize) -> Result<Arc<Type>, DetectorError> {
        let found = self.read_level(reader, levels)?;
        found.ok_or_else(|| DetectorError::Message("a field has no type".into()))
    }

    fn read_array(
        &mut self,
        code: u8,
        reader: &mut Reader<'_>,
        levels: usize,
    ) -> Result<Type, DetectorError> {
        let element = self.read_present(reader, levels)?;
        match (&element.kind, code) {
            (Kind::Structure, STRUCTURE) => Ok(Type::array(Kind::StructureArray, element)),
            (Kind::Union, UNION) => Ok(Type::array(Kind::UnionArray, element)),
            _ => Err(DetectorError::Message("an array has elements of another kind".into())),
        }
    }

    fn read_fields(
        &mut self,
        code: u8,
        reader: &mut Reader<'_>,
        levels: usize,
    ) -> Result<Type, DetectorError> {
        let kind = if code == STRUCTURE { Kind::Structure } else { Kind::Union };
        let mut read = Type { id: name(reader)?, ..Type::leaf(kind) };
        for _ in 0..reader.count()? {
            let field = (name(reader)?, self.read_present(reader, levels)?);
            read.nodes += field.1.nodes;
            if read.nodes > NODES_MAX {
                return too_large();
            }
            read.height = read.height.max(field.1.height + 1);
            if read.kind == Kind::Structure {
                read.bits += field.1.bits;
            }
            read.fields.push(field);
        }
        Ok(read)
    }

    fn define(&mut self, number: u16, found: Arc<Type>) -> Result<Arc<Type>, DetectorError> {
        self.cached_nodes += found.nodes;
        if let Some(old) = self.cached.insert(number, Arc::clone(&found)) {
            self.cached_nodes -= old.nodes;
        }
        if self.cached_nodes > CACHED_NODES_MAX { too_large() } else { Ok(found) }
    }
}

fn name(reader: &mut Reader<'_>) -> Result<String, DetectorError> {
    let name = reader.text()?;
    if name.len() > NAME_BYTES_MAX {
        return Err(DetectorError::Message(format!("the name of a field has {} bytes", name.len())));
    }
    Ok(name.into_owned())
}

fn too_large<T>() -> Result<T, DetectorError> {
    Err(DetectorError::Message(format!(
        "a type has more than {HEIGHT_MAX} levels or {NODES_MAX} parts, or all types have more than \
         {CACHED_NODES_MAX} parts"
    )))
}

fn unknown<T>(code: u8) -> Result<T, DetectorError> {
    Err(DetectorError::Message(format!("a field has the unknown type {code:#04x}")))
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
