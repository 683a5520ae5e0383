//! Sums of counts and of measured values.
//!
//! `Iterator::sum` and `product` end the program when integers overflow, and a peer may choose the numbers
//! that are added. The workspace therefore disallows both (`clippy.toml`).

use std::borrow::Borrow;

/// Unsigned integer that counts something.
pub trait Count: Copy {
    /// The number 0.
    const ZERO: Self;
    /// The number 1.
    const ONE: Self;

    /// Sum of two numbers, at most the largest one of the type.
    #[must_use]
    fn plus(self, other: Self) -> Self;

    /// Product of two numbers, at most the largest one of the type.
    #[must_use]
    fn times(self, other: Self) -> Self;
}

macro_rules! count {
    ($($type:ty)*) => {$(
        impl Count for $type {
            const ZERO: Self = 0;
            const ONE: Self = 1;

            fn plus(self, other: Self) -> Self {
                self.saturating_add(other)
            }

            fn times(self, other: Self) -> Self {
                self.saturating_mul(other)
            }
        }
    )*};
}

count!(u32 u64 u128 usize);

/// Sums of an iterator's items.
pub trait Sums: Iterator + Sized {
    /// Sum of unsigned integers, at most the largest one of the type.
    fn saturating_sum<C: Count>(self) -> C
    where
        Self::Item: Borrow<C>,
    {
        self.fold(C::ZERO, |sum, item| sum.plus(*item.borrow()))
    }

    /// Product of unsigned integers, at most the largest one of the type.
    fn saturating_product<C: Count>(self) -> C
    where
        Self::Item: Borrow<C>,
    {
        self.fold(C::ONE, |product, item| product.times(*item.borrow()))
    }

    /// Sum of floating-point numbers, 0 without any.
    fn float_sum(self) -> f64
    where
        Self::Item: Borrow<f64>,
    {
        self.fold(0.0, |sum, item| sum + item.borrow())
    }
}

impl<I: Iterator> Sums for I {}

#[cfg(test)]
#[path = "sum_tests.rs"]
mod tests;
