//! Output of each step, and rejected inputs.
use proptest::prelude::*;

use super::*;

fn samples(element: Element, shape: &[u64]) -> Samples {
    Samples { element, shape: shape.to_vec(), compressed: false }
}

fn output(step: &str, element: Element, shape: &[u64]) -> Result<Samples, String> {
    let step: Step = step.parse().unwrap();
    step.output(&samples(element, shape)).map_err(|e| e.to_string())
}

#[test]
fn every_step_tells_what_comes_out() {
    use Element::{F32, F64, I16, I32, U8, U16, U32};
    for (step, (element, shape), (to, becomes)) in [
        ("spectrum", (I16, &[8192][..]), (F32, &[4097][..])),
        ("spectrum size=4096", (I16, &[8192]), (F32, &[2, 2049])),
        ("spectrum size=8192", (I16, &[8192]), (F32, &[4097])),
        ("spectrum", (U8, &[3, 5]), (F32, &[3, 3])),
        ("decimate by=8", (I16, &[2, 8192]), (I16, &[2, 1024])),
        ("bin by=2", (U8, &[4, 6]), (U16, &[4, 3])),
        ("bin by=2x3", (U8, &[4, 6]), (U16, &[2, 2])),
        ("bin by=512", (U8, &[1024]), (U32, &[2])),
        ("bin by=2", (I16, &[4]), (I32, &[2])),
        ("bin by=2", (F32, &[4]), (F64, &[2])),
        ("threshold at=-3", (I16, &[4]), (I16, &[4])),
    ] {
        assert_eq!(output(step, element, shape), Ok(samples(to, becomes)), "{step}");
    }
    let packed = Samples { compressed: true, ..samples(U16, &[7]) };
    assert_eq!(output("lz4", U16, &[7]), Ok(packed));
}

#[test]
fn what_a_step_cannot_take_is_refused_with_the_reason() {
    use Element::{F64, I16, U8, U64};
    for (step, element, shape, why) in [
        ("spectrum", I16, &[][..], "known shape"),
        ("spectrum", I16, &[0], "known shape"),
        ("spectrum", I16, &[1], "2 to"),
        ("spectrum size=3", I16, &[8], "3 does not divide 8"),
        ("spectrum size=2", I16, &[1, 1, 1, 1, 1, 1, 1, 4], "8 dimensions"),
        ("decimate by=3", I16, &[8], "3 does not divide 8"),
        ("bin by=2x2", U8, &[8], "one dimension"),
        ("bin by=2x2", U8, &[3, 8], "2 does not divide 3"),
        ("bin by=2", U64, &[8], "no element holds"),
        ("threshold at=300", U8, &[8], "between 0 and 255"),
        ("threshold at=-1", U8, &[8], "between 0 and 255"),
        ("lz4", F64, &[1 << 31], "4 GiB"),
    ] {
        let error = output(step, element, shape).unwrap_err();
        assert!(error.contains(why) && error.contains(step.split(' ').next().unwrap()), "{step}: {error}");
    }
    let packed = Samples { compressed: true, ..samples(I16, &[8]) };
    let error = Step::Lz4.output(&packed).unwrap_err().to_string();
    assert!(error.contains("compressed i16 of shape [8]"), "{error}");
}

fn largest(element: Element) -> Option<(i128, i128)> {
    let bits = 8 * element.bytes() as u32;
    match element {
        Element::U8 | Element::U16 | Element::U32 | Element::U64 => Some((0, (1 << bits) - 1)),
        Element::I8 | Element::I16 | Element::I32 | Element::I64 => {
            Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
        }
        Element::F32 | Element::F64 => None,
    }
}

proptest! {
    #[test]
    fn no_sum_overflows(
        element in proptest::sample::select(vec![
            Element::U8, Element::U16, Element::U32, Element::U64,
            Element::I8, Element::I16, Element::I32, Element::I64,
        ]),
        count in 2..1u64 << 40,
    ) {
        let Ok(sum) = sum_of(element, count) else {
            prop_assert!(element.bytes() == 8 || count > 1 << 32);
            return Ok(());
        };
        let ((least, most), (sum_least, sum_most)) = (largest(element).unwrap(), largest(sum).unwrap());
        prop_assert!(least * i128::from(count) >= sum_least && most * i128::from(count) <= sum_most);
    }
}
