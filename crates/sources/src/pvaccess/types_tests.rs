//! Types that are too large, too deep, or not valid.
use super::*;

fn read(bytes: &[u8]) -> Result<Option<Arc<Type>>, DetectorError> {
    Types::default().read(&mut Reader::new(bytes, 0, false))
}

fn refused(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

/// A structure without a name, with fields `a`.
fn structure(fields: &[&[u8]]) -> Vec<u8> {
    let fields = fields.iter().flat_map(|field| [&[1, b'a'][..], field].concat());
    [STRUCTURE, 0, 0].into_iter().chain(fields).collect()
}

fn with_fields(fields: &[Vec<u8>]) -> Vec<u8> {
    let mut out = structure(&fields.iter().map(Vec::as_slice).collect::<Vec<_>>());
    out[2] = fields.len() as u8;
    out
}

#[test]
fn a_structure_counts_its_bits() {
    let inner = with_fields(&[vec![0x22], vec![0x60]]);
    let found =
        read(&with_fields(&[inner.clone(), vec![0x2C], [vec![0x88], inner].concat()])).unwrap().unwrap();
    assert_eq!((found.bits, found.fields[0].1.bits, found.fields[2].1.bits), (6, 3, 1));
    assert_eq!(read(&[NULL]).unwrap(), None);
}

#[test]
fn nested_types_have_a_limit() {
    let nested = |levels: usize| (1..levels).fold(vec![0x22], |inner, _| with_fields(&[inner]));
    assert!(read(&nested(HEIGHT_MAX)).is_ok());
    assert!(refused(&nested(HEIGHT_MAX + 1)).contains("more than 20 levels"));
    assert!(refused(&[0x88].repeat(100_000)).contains("more than 20 levels"));
    assert!(refused(&[DEFINES, 0, 0].repeat(100_000)).contains("more than 20 levels"));
}

#[test]
fn references_cannot_multiply_a_type() {
    // Each type contains the one before sixteen times.
    let mut bytes = vec![DEFINES, 0, 0, 0x22];
    for level in 1..15_u8 {
        bytes.extend([DEFINES, level, 0]);
        bytes.extend(with_fields(&vec![vec![REFERS, level - 1, 0]; 16]));
    }
    let (mut types, mut reader) = (Types::default(), Reader::new(&bytes, 0, false));
    let error = (0..15).find_map(|_| types.read(&mut reader).err()).unwrap();
    assert!(error.to_string().contains("4096 parts"), "{error}");
}

#[test]
fn references_cannot_make_a_type_deeper() {
    let mut types = Types::default();
    let mut define = |number: u8, of: Vec<u8>| {
        let bytes = [vec![DEFINES, number, 0], of].concat();
        types.read(&mut Reader::new(&bytes, 0, false))
    };
    assert!(define(0, vec![0x22]).is_ok());
    let deepest =
        (1..30_u8).find(|level| define(*level, with_fields(&[vec![REFERS, level - 1, 0]])).is_err());
    assert!(deepest.is_some_and(|level| usize::from(level) <= HEIGHT_MAX), "{deepest:?}");
}

#[test]
fn the_cache_has_a_limit() {
    let wide = with_fields(&vec![vec![0x22]; 200]);
    let mut types = Types::default();
    let mut define = |number: u16| {
        let bytes = [vec![DEFINES], number.to_le_bytes().to_vec(), wide.clone()].concat();
        types.read(&mut Reader::new(&bytes, 0, false)).map(|_| ())
    };
    // The same number again takes no more memory.
    (0..1000).for_each(|_| define(1).unwrap());
    assert!((0..1000).find_map(|number| define(number).err()).is_some());
}

#[test]
fn what_is_not_a_type() {
    assert!(refused(&[REFERS, 7, 0]).contains("type 7 is not known"));
    assert!(refused(&[0x99]).contains("unknown type 0x99"));
    assert!(refused(&[0x38, 4]).contains("unknown type 0x38"));
    assert!(refused(&[0x88, 0x22]).contains("another kind"));
    assert!(refused(&[STRUCTURE, 0, 1, 1, b'a', NULL]).contains("a field has no type"));
    assert!(refused(&[STRUCTURE, 0, 254, 255, 255, 255, 255]).contains("truncated"));
    assert!(refused(&[]).contains("truncated"));
}
