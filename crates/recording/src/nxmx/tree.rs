//! A tree of NeXus groups and fields, and its encoding in HDF5.
use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::hdf5::{Attribute, Dataset, ElementKind, HdfWriter, Links, Storage};

/// A member of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Group(Group),
    Field(Field),
    /// The images of this stream.
    Data(u32),
    /// Which rows of its images are recorded.
    Valid(u32),
    /// A dataset of another file.
    External {
        file: String,
        dataset: String,
    },
}

/// A group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// NeXus class.
    class: &'static str,
    /// Members by name.
    pub(crate) members: Vec<(String, Node)>,
}

impl Group {
    pub(super) fn new(class: &'static str) -> Self {
        Self { class, members: Vec::new() }
    }

    pub(super) fn add(&mut self, name: &str, node: Node) {
        self.members.push((name.to_owned(), node));
    }

    pub(super) fn add_some(&mut self, name: &str, field: Option<Field>) {
        self.members.extend(field.map(|field| (name.to_owned(), Node::Field(field))));
    }
}

/// A dataset with its attributes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(super) value: Value,
    pub(super) attributes: Vec<Attribute>,
}

/// Value of a dataset.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Float(f64),
    Integer(u64),
    Flag(bool),
    Pair([u64; 2]),
    /// One angle per row: start + increment * row. Takes no space if the increment is 0.
    Angles {
        start: f64,
        increment: f64,
        rows: u64,
    },
}

impl Field {
    pub(super) fn new(value: Value, units: &str) -> Self {
        Self { value, attributes: vec![Attribute::Text("units", units.to_owned())] }
    }

    pub(super) fn float(value: f64, units: &str) -> Self {
        Self::new(Value::Float(value), units)
    }

    pub(super) fn text(text: &str) -> Self {
        Self { value: Value::Text(text.to_owned()), attributes: Vec::new() }
    }

    pub(super) fn integer(value: u64) -> Self {
        Self { value: Value::Integer(value), attributes: Vec::new() }
    }

    pub(super) fn flag(value: bool) -> Self {
        Self { value: Value::Flag(value), attributes: Vec::new() }
    }

    pub(super) fn pair(value: [u64; 2]) -> Self {
        Self { value: Value::Pair(value), attributes: Vec::new() }
    }

    /// Makes the field an axis of a transformation `kind` along `vector`, which is mounted on `base`.
    pub(super) fn moves(mut self, kind: &str, vector: [f64; 3], base: &str) -> Self {
        self.attributes.extend([
            Attribute::Text("transformation_type", kind.to_owned()),
            Attribute::Vector("vector", vector),
            Attribute::Vector("offset", [0.0; 3]),
            Attribute::Text("offset_units", "m".to_owned()),
            Attribute::Text("depends_on", base.to_owned()),
        ]);
        self
    }

    fn put<W: Write>(&self, place: &mut HdfWriter<'_, W>) -> io::Result<u64> {
        let (element, dimensions, storage, fill) = match &self.value {
            Value::Text(text) => {
                let bytes = if text.is_empty() { b"\0" } else { text.as_bytes() };
                let address = place.put(bytes)?;
                (ElementKind::text(bytes.len()), Vec::new(), Storage::Contiguous { address }, Vec::new())
            }
            Value::Float(value) => {
                let address = place.put(&value.to_le_bytes())?;
                (ElementKind::F64, Vec::new(), Storage::Contiguous { address }, Vec::new())
            }
            Value::Integer(value) => {
                let address = place.put(&value.to_le_bytes())?;
                (ElementKind::U64, Vec::new(), Storage::Contiguous { address }, Vec::new())
            }
            Value::Flag(value) => {
                let address = place.put(&[u8::from(*value)])?;
                (ElementKind::U8, Vec::new(), Storage::Contiguous { address }, Vec::new())
            }
            Value::Pair(values) => {
                let address = place.put_numbers(2, values.iter().copied())?;
                (ElementKind::U64, vec![2], Storage::Contiguous { address }, Vec::new())
            }
            &Value::Angles { start, increment: 0.0, rows } => {
                (ElementKind::F64, vec![rows], Storage::Nowhere, start.to_le_bytes().to_vec())
            }
            &Value::Angles { start, increment, rows } => {
                let angle = |row: u64| (start + increment * row as f64).to_bits();
                let address = place.put_numbers(rows, (0..rows).map(angle))?;
                (ElementKind::F64, vec![rows], Storage::Contiguous { address }, Vec::new())
            }
        };
        place.put_dataset(&Dataset {
            element,
            dimensions,
            storage,
            fill,
            attributes: self.attributes.clone(),
        })
    }
}

/// Addresses of the images of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataRows {
    /// Dataset `data`.
    pub(crate) data: u64,
    /// Dataset `valid`.
    pub(crate) valid: u64,
}

/// Writes nodes with everything below them, and adds them to `links`. `images` has the datasets by stream.
pub(crate) fn put_nodes<W: Write>(
    nodes: &[(String, Node)],
    images: &BTreeMap<u32, DataRows>,
    links: &mut Links,
    place: &mut HdfWriter<'_, W>,
) -> io::Result<()> {
    for (name, node) in nodes {
        match node {
            Node::Field(field) => links.add(name, field.put(place)?),
            Node::Data(stream) => images.get(stream).into_iter().for_each(|rows| links.add(name, rows.data)),
            Node::Valid(stream) => {
                images.get(stream).into_iter().for_each(|rows| links.add(name, rows.valid))
            }
            Node::External { file, dataset } => links.add_external(name, file, dataset),
            Node::Group(group) => {
                let mut members = Links::default();
                put_nodes(&group.members, images, &mut members, place)?;
                let class = [Attribute::Text("NX_class", group.class.to_owned())];
                links.add(name, place.put_group(members, &class)?);
            }
        }
    }
    Ok(())
}
