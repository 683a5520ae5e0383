//! Values of a pvAccess message by their types, without copying arrays.
use std::ops::Range;

use keepup_stream::pvaccess::{Bits, Reader};
use keepup_stream::wire::ElementType;

use super::types::{Kind, Scalar, Type, Types};
use crate::error::DetectorError;

/// Most levels of values inside each other. A value of its own type may contain another one.
const DEPTH_MAX: usize = 40;

/// Reader of values, with the types that they may refer to.
pub(super) struct Values<'a, 't> {
    pub(super) reader: Reader<'a>,
    pub(super) types: &'t mut Types,
}

/// How much of a structure a message contains.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    /// All fields.
    Whole,
    /// Fields whose bit is set. The structure itself has the bit `first`.
    Changed { bits: Bits<'a>, first: usize },
}

/// An array of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Array {
    pub(super) element: ElementType,
    /// Place of its bytes in the message.
    pub(super) bytes: Range<usize>,
}

impl<'a> Values<'a, '_> {
    /// Calls `take` for each field that the message contains. `take` must read the field.
    pub(super) fn fields(
        &mut self,
        structure: &Type,
        part: Part<'a>,
        mut take: impl FnMut(&mut Self, &str, &Type, Part<'a>) -> Result<(), DetectorError>,
    ) -> Result<(), DetectorError> {
        let mut bit = match part {
            Part::Whole => 1,
            Part::Changed { first, .. } => first + 1,
        };
        for (name, field) in &structure.fields {
            let found = match part {
                Part::Whole => Some(Part::Whole),
                Part::Changed { bits, .. } if bits.has(bit) => Some(Part::Whole),
                Part::Changed { bits, .. } => {
                    let has_any = bits.has_any(bit + 1..bit + field.bits);
                    has_any.then_some(Part::Changed { bits, first: bit })
                }
            };
            if let Some(part) = found {
                self.reader.step()?;
                take(self, name, field, part)?;
            }
            bit += field.bits;
        }
        Ok(())
    }

    /// Skips a field.
    pub(super) fn skip(&mut self, field: &Type, part: Part<'a>) -> Result<(), DetectorError> {
        self.skip_level(field, part, DEPTH_MAX)
    }

    fn skip_level(&mut self, field: &Type, part: Part<'a>, levels: usize) -> Result<(), DetectorError> {
        self.reader.step()?;
        let Some(below) = levels.checked_sub(1) else {
            return Err(DetectorError::Message(format!("values are nested in more than {DEPTH_MAX} levels")));
        };
        match &field.kind {
            Kind::Scalar(scalar) => self.skip_scalars(*scalar, 1),
            Kind::ScalarArray(scalar) => {
                let count = self.reader.count()?;
                self.skip_scalars(*scalar, count)
            }
            Kind::Structure => {
                self.fields(field, part, |values, _, field, part| values.skip_level(field, part, below))
            }
            Kind::Union => match self.selected(field)? {
                Some(selected) => self.skip_level(selected, Part::Whole, below),
                None => Ok(()),
            },
            Kind::Any => self.skip_any(below),
            Kind::StructureArray(element) | Kind::UnionArray(element) => {
                self.elements(|values| values.skip_level(element, Part::Whole, below))
            }
            Kind::AnyArray => self.elements(|values| values.skip_any(below)),
        }
    }

    fn skip_any(&mut self, levels: usize) -> Result<(), DetectorError> {
        match self.types.read(&mut self.reader)? {
            Some(found) => self.skip_level(&found, Part::Whole, levels),
            None => Ok(()),
        }
    }

    fn skip_scalars(&mut self, scalar: Scalar, count: usize) -> Result<(), DetectorError> {
        match scalar.element() {
            Some(element) => Ok(self.reader.range(count, element.bytes() as usize).map(|_| ())?),
            None => Ok((0..count).try_for_each(|_| self.reader.text().map(|_| ()))?),
        }
    }

    /// Calls `take` for each element of an array that is not null.
    pub(super) fn elements(
        &mut self,
        mut take: impl FnMut(&mut Self) -> Result<(), DetectorError>,
    ) -> Result<(), DetectorError> {
        for _ in 0..self.reader.count()? {
            self.reader.step()?;
            if self.reader.u8()? != 0 {
                take(self)?;
            }
        }
        Ok(())
    }

    /// Type of the value of a union, which follows; `None` if it has none.
    fn selected<'f>(&mut self, union: &'f Type) -> Result<Option<&'f Type>, DetectorError> {
        let Some(index) = self.reader.size()? else { return Ok(None) };
        match union.fields.get(index) {
            Some((_, field)) => Ok(Some(field)),
            None => Err(DetectorError::Message(format!("a union has no member {index}"))),
        }
    }

    /// An array of numbers in a union, or one that describes its own type; `None` if there is none.
    pub(super) fn array(&mut self, field: &Type) -> Result<Option<Array>, DetectorError> {
        let Some(found) = self.any_type(field)? else { return Ok(None) };
        let element = match &found.kind {
            Kind::ScalarArray(scalar) => scalar.element(),
            _ => None,
        };
        let Some(element) = element else {
            return Err(DetectorError::Message("the image is not an array of numbers".into()));
        };
        let count = self.reader.count()?;
        let bytes = self.reader.range(count, element.bytes() as usize)?;
        Ok(Some(Array { element, bytes }))
    }

    /// A whole number; other fields are skipped.
    pub(super) fn integer(&mut self, field: &Type, part: Part<'a>) -> Result<Option<i64>, DetectorError> {
        let Kind::Scalar(scalar) = &field.kind else { return self.skip(field, part).map(|()| None) };
        Ok(Some(match scalar {
            Scalar::Number(ElementType::I8) => (self.reader.u8()? as i8).into(),
            Scalar::Number(ElementType::U8) | Scalar::Bool => self.reader.u8()?.into(),
            Scalar::Number(ElementType::I16) => (self.reader.u16()? as i16).into(),
            Scalar::Number(ElementType::U16) => self.reader.u16()?.into(),
            Scalar::Number(ElementType::I32) => (self.reader.u32()? as i32).into(),
            Scalar::Number(ElementType::U32) => self.reader.u32()?.into(),
            Scalar::Number(ElementType::I64) => self.reader.u64()? as i64,
            Scalar::Number(ElementType::U64) => i64::try_from(self.reader.u64()?).unwrap_or(i64::MAX),
            _ => return self.skip(field, part).map(|()| None),
        }))
    }

    /// A text; other fields are skipped.
    pub(super) fn text(&mut self, field: &Type, part: Part<'a>) -> Result<Option<String>, DetectorError> {
        match &field.kind {
            Kind::Scalar(Scalar::Text) => Ok(Some(self.reader.text()?.into_owned())),
            _ => self.skip(field, part).map(|()| None),
        }
    }

    /// A whole number that describes its own type; other values are skipped.
    pub(super) fn any_integer(&mut self, field: &Type) -> Result<Option<i64>, DetectorError> {
        match self.any_type(field)? {
            Some(found) => self.integer(&found, Part::Whole),
            None => Ok(None),
        }
    }

    /// Text of a single value that describes its own type; other values are skipped.
    pub(super) fn any_text(&mut self, field: &Type) -> Result<Option<String>, DetectorError> {
        let Some(found) = self.any_type(field)? else { return Ok(None) };
        Ok(match &found.kind {
            Kind::Scalar(Scalar::Text) => self.text(&found, Part::Whole)?,
            Kind::Scalar(Scalar::Bool) => Some((self.reader.u8()? != 0).to_string()),
            Kind::Scalar(Scalar::Number(ElementType::F32)) => {
                Some(f32::from_bits(self.reader.u32()?).to_string())
            }
            Kind::Scalar(Scalar::Number(ElementType::F64)) => {
                Some(f64::from_bits(self.reader.u64()?).to_string())
            }
            Kind::Scalar(Scalar::Number(ElementType::U64)) => Some(self.reader.u64()?.to_string()),
            _ => self.integer(&found, Part::Whole)?.map(|number| number.to_string()),
        })
    }

    /// Type of an `any`, or of the value that a union selects; skips other fields.
    fn any_type(&mut self, field: &Type) -> Result<Option<std::sync::Arc<Type>>, DetectorError> {
        match &field.kind {
            Kind::Any => self.types.read(&mut self.reader),
            Kind::Union => {
                let Some(index) = self.reader.size()? else { return Ok(None) };
                let member = field.fields.get(index).map(|(_, member)| std::sync::Arc::clone(member));
                member
                    .map(Some)
                    .ok_or_else(|| DetectorError::Message(format!("a union has no member {index}")))
            }
            _ => self.skip(field, Part::Whole).map(|()| None),
        }
    }
}
