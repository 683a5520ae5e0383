//! Serialization of quantities as exact strings.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use keepup_error::Cause;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{BYTE_RATE, ByteRate, Bytes, EVENT_RATE, EventRate, SHARE, SIZE, Share, Span, UnitError};

/// A quantity with an exact text form.
trait Exact: FromStr<Err = UnitError> {
    /// Example for the message when a file has no string.
    const EXAMPLE: &str;

    fn exact(&self) -> String;
}

impl Exact for Bytes {
    const EXAMPLE: &str = SIZE.example;

    fn exact(&self) -> String {
        Self::exact(*self)
    }
}

impl Exact for ByteRate {
    const EXAMPLE: &str = BYTE_RATE.example;

    fn exact(&self) -> String {
        Self::exact(*self)
    }
}

impl Exact for EventRate {
    const EXAMPLE: &str = EVENT_RATE.example;

    fn exact(&self) -> String {
        EVENT_RATE.exact(self.0)
    }
}

impl Exact for Share {
    const EXAMPLE: &str = SHARE.example;

    fn exact(&self) -> String {
        SHARE.exact(self.0)
    }
}

impl Exact for Span {
    const EXAMPLE: &str = "8 h";

    fn exact(&self) -> String {
        self.to_string()
    }
}

struct Text<T>(PhantomData<T>);

impl<T: Exact> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string with a unit, such as {:?}", T::EXAMPLE)
    }

    fn visit_str<E: Error>(self, written: &str) -> Result<T, E> {
        written.parse().map_err(|error| E::custom(Cause::of(&error).to_text()))
    }
}

macro_rules! as_text {
    ($($quantity:ty),*) => {$(
        impl Serialize for $quantity {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.exact())
            }
        }

        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text(PhantomData))
            }
        }
    )*};
}

as_text!(Bytes, ByteRate, EventRate, Share, Span);
