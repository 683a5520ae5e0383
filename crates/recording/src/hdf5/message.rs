//! Bodies of the object header messages.
use keepup_stream::wire::ElementType;

use super::UNDEFINED;

pub(super) const DATASPACE: u8 = 0x01;
pub(super) const LINK_INFO: u8 = 0x02;
pub(super) const DATATYPE: u8 = 0x03;
pub(super) const FILL_VALUE: u8 = 0x05;
pub(super) const LINK: u8 = 0x06;
pub(super) const LAYOUT: u8 = 0x08;
pub(super) const GROUP_INFO: u8 = 0x0A;
pub(super) const FILTERS: u8 = 0x0B;
pub(super) const ATTRIBUTE: u8 = 0x0C;
pub(super) const REFERENCE_COUNT: u8 = 0x16;

/// Largest body of a message: its length takes 16 bits.
pub(super) const MESSAGE_BYTES_MAX: usize = 65_535;

/// Element type of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementKind {
    /// Size in bytes.
    pub(crate) bytes: u32,
    kind: ElementClass,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElementClass {
    Unsigned,
    Signed,
    Float,
    /// UTF-8, padded with zeros.
    Text,
}

impl ElementKind {
    pub(crate) const U8: Self = Self { bytes: 1, kind: ElementClass::Unsigned };
    pub(crate) const U64: Self = Self { bytes: 8, kind: ElementClass::Unsigned };
    pub(crate) const F64: Self = Self { bytes: 8, kind: ElementClass::Float };

    /// Element type of a stream.
    pub(crate) fn of(element: ElementType) -> Self {
        let kind = match element {
            ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => {
                ElementClass::Unsigned
            }
            ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64 => ElementClass::Signed,
            ElementType::F32 | ElementType::F64 => ElementClass::Float,
        };
        Self { bytes: element.bytes() as u32, kind }
    }

    /// A text of this many bytes, at least one.
    pub(crate) fn text(bytes: usize) -> Self {
        Self { bytes: bytes.max(1) as u32, kind: ElementClass::Text }
    }

    /// Datatype message: version 1, classes 0 (fixed-point), 1 (floating-point) and 3 (string).
    pub(super) fn message(self) -> Vec<u8> {
        let bits = (self.bytes * 8) as u16;
        let (class, flags) = match self.kind {
            ElementClass::Unsigned => (0, [0, 0]),
            ElementClass::Signed => (0, [0x08, 0]),
            // The mantissa's first bit is implied; the sign is the last bit.
            ElementClass::Float => (1, [0x20, bits as u8 - 1]),
            // Padded with zeros, UTF-8.
            ElementClass::Text => (3, [0x11, 0]),
        };
        let mut out = vec![0x10 | class, flags[0], flags[1], 0];
        out.extend_from_slice(&self.bytes.to_le_bytes());
        if self.kind != ElementClass::Text {
            // First bit, and number of bits.
            out.extend_from_slice(&[0, 0]);
            out.extend_from_slice(&bits.to_le_bytes());
        }
        if self.kind == ElementClass::Float {
            let (exponent_at, exponent_bits, bias) =
                if bits == 32 { (23, 8, 127) } else { (52, 11, 1023u32) };
            out.extend_from_slice(&[exponent_at, exponent_bits, 0, exponent_at]);
            out.extend_from_slice(&bias.to_le_bytes());
        }
        out
    }
}

/// Dataspace message, version 2: scalar without dimensions, otherwise simple and of fixed size.
pub(super) fn dataspace(dimensions: &[u64]) -> Vec<u8> {
    let mut out = vec![2, dimensions.len() as u8, 0, u8::from(!dimensions.is_empty())];
    dimensions.iter().for_each(|dimension| out.extend_from_slice(&dimension.to_le_bytes()));
    out
}

/// Fill value message, version 3: the value of unallocated elements; zero without `value`.
pub(super) fn fill_value(value: Option<&[u8]>) -> Vec<u8> {
    // Incremental allocation; the fill value is written if it is set.
    const WHEN: u8 = 0x0B;
    const DEFINED: u8 = 0x20;
    let Some(value) = value else { return vec![3, WHEN] };
    let mut out = vec![3, WHEN | DEFINED];
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(value);
    out
}

/// A filter that chunks go through, with its registered number and parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) id: u16,
    pub(crate) name: &'static str,
    pub(crate) parameters: Vec<u32>,
}

/// Filter pipeline message, version 2.
pub(super) fn filters(filter: &Filter) -> Vec<u8> {
    let mut out = vec![2, 1];
    // Mandatory: data cannot be read without undoing the filter.
    let numbers = [filter.id, filter.name.len() as u16 + 1, 0, filter.parameters.len() as u16];
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    out.extend_from_slice(filter.name.as_bytes());
    out.push(0);
    filter.parameters.iter().for_each(|parameter| out.extend_from_slice(&parameter.to_le_bytes()));
    out
}

/// An attribute of a dataset or group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Attribute {
    /// A text.
    Text(&'static str, String),
    /// A number.
    Number(&'static str, u64),
    /// Coordinates in space.
    Vector(&'static str, [f64; 3]),
}

/// Attribute message, version 3.
pub(super) fn attribute(attribute: &Attribute) -> Vec<u8> {
    let (name, kind, dimensions, value) = match attribute {
        Attribute::Text(name, text) => {
            let value = if text.is_empty() { vec![0] } else { text.clone().into_bytes() };
            (name, ElementKind::text(text.len()), &[][..], value)
        }
        Attribute::Number(name, number) => (name, ElementKind::U64, &[][..], number.to_le_bytes().to_vec()),
        Attribute::Vector(name, vector) => {
            (name, ElementKind::F64, &[3][..], vector.iter().flat_map(|part| part.to_le_bytes()).collect())
        }
    };
    let (datatype, space) = (kind.message(), dataspace(dimensions));
    let mut out = vec![3, 0];
    for length in [name.len() + 1, datatype.len(), space.len()] {
        out.extend_from_slice(&(length as u16).to_le_bytes());
    }
    // The name is UTF-8.
    out.push(1);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    for part in [datatype, space, value] {
        out.extend_from_slice(&part);
    }
    out
}

/// Links of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    messages: Vec<Vec<u8>>,
}

impl Links {
    /// Adds a link to the object with the header at `address`.
    pub(crate) fn add(&mut self, name: &str, address: u64) {
        self.messages.push(link(name, None, &address.to_le_bytes()));
    }

    /// Adds a link to an object of another file, with a path relative to this file's directory.
    pub(crate) fn add_external(&mut self, name: &str, path: &str, object: &str) {
        let mut value = vec![0];
        for text in [path, object] {
            value.extend_from_slice(text.as_bytes());
            value.push(0);
        }
        let mut body = (value.len() as u16).to_le_bytes().to_vec();
        body.extend_from_slice(&value);
        // Link type 64: external.
        self.messages.push(link(name, Some(64), &body));
    }

    /// Messages of a group with these links: link info (none indexed), group info, links.
    pub(super) fn messages(self) -> impl Iterator<Item = (u8, Vec<u8>)> {
        let mut info = vec![0, 0];
        info.extend_from_slice(&UNDEFINED.to_le_bytes());
        info.extend_from_slice(&UNDEFINED.to_le_bytes());
        let links = self.messages.into_iter().map(|link| (LINK, link));
        [(LINK_INFO, info), (GROUP_INFO, vec![0, 0])].into_iter().chain(links)
    }
}

/// Link message, version 1, with its name in UTF-8.
fn link(name: &str, kind: Option<u8>, value: &[u8]) -> Vec<u8> {
    const NAME_LENGTH_IN_TWO_BYTES: u8 = 1;
    const HAS_KIND: u8 = 1 << 3;
    const HAS_CHARACTER_SET: u8 = 1 << 4;
    let flags = NAME_LENGTH_IN_TWO_BYTES | HAS_CHARACTER_SET | if kind.is_some() { HAS_KIND } else { 0 };
    let mut out = vec![1, flags];
    out.extend(kind);
    out.push(1);
    out.extend_from_slice(&(name.len() as u16).to_le_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(value);
    out
}
