//! Samples in events: little-endian numbers of ten types.
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

/// Type in which filters compute.
pub(super) trait Real:
    Copy + Default + Add<Output = Self> + Mul<Output = Self> + AddAssign + Sum
{
    fn of(value: f64) -> Self;
}

impl Real for f32 {
    fn of(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }
}

/// One sample.
pub(super) trait Sample: Copy + Default + PartialOrd + Send + 'static {
    /// Real number type that holds every sample, except for the last digits of 64-bit samples.
    type Real: Real + Send;
    const BYTES: usize;

    /// Reads a sample from `bytes`.
    fn get(bytes: &[u8]) -> Self;
    /// Writes the sample to `bytes`.
    fn put(self, bytes: &mut [u8]);
    /// Value in single precision, rounded.
    fn single(self) -> f32;
    /// Value as a real number.
    fn real(self) -> Self::Real;
    /// Nearest sample value.
    fn nearest(real: Self::Real) -> Self;
    /// Smallest sample value that is not below `value`.
    fn not_below(value: f64) -> Self;
}

macro_rules! number {
    ($type:ty, $real:ty, $nearest:expr, $not_below:expr) => {
        impl Sample for $type {
            type Real = $real;
            const BYTES: usize = size_of::<$type>();

            fn get(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$type>()];
                own.copy_from_slice(bytes);
                Self::from_le_bytes(own)
            }

            fn put(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            fn single(self) -> f32 {
                self as f32
            }

            fn real(self) -> $real {
                self as $real
            }

            fn nearest(real: $real) -> Self {
                $nearest(real)
            }

            fn not_below(value: f64) -> Self {
                $not_below(value)
            }
        }
    };
}

macro_rules! integer {
    ($type:ty, $real:ty) => {
        // A cast from a real number saturates at the type's limits.
        number!($type, $real, |real: $real| real.round_ties_even() as $type, |value: f64| value.ceil()
            as $type);
    };
}

integer!(u8, f32);
integer!(u16, f32);
integer!(u32, f64);
integer!(u64, f64);
integer!(i8, f32);
integer!(i16, f32);
integer!(i32, f64);
integer!(i64, f64);
number!(f32, f32, |real| real, single_not_below);
number!(f64, f64, |real| real, |value| value);

fn single_not_below(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// Evaluates an expression with `$T` as the Rust type of a sample.
macro_rules! by_element {
    ($element:expr, $T:ident => $made:expr) => {{
        macro_rules! with {
            ($type:ty) => {{
                type $T = $type;
                $made
            }};
        }
        match $element {
            Element::U8 => with!(u8),
            Element::U16 => with!(u16),
            Element::U32 => with!(u32),
            Element::U64 => with!(u64),
            Element::I8 => with!(i8),
            Element::I16 => with!(i16),
            Element::I32 => with!(i32),
            Element::I64 => with!(i64),
            Element::F32 => with!(f32),
            Element::F64 => with!(f64),
        }
    }};
}
pub(super) use by_element;
