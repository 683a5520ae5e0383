//! JSON and limits of declared losses.

use super::*;
use crate::ledger::LossCause;

#[test]
fn missing_has_the_documented_json_and_limits() {
    let gap =
        |stream, first_sequence, events| Gap { stream, first_sequence, events, cause: LossCause::Source };
    let frame = Missing { gaps: vec![gap(7, 1000, 2)] }.to_frame().unwrap();
    let json = r#"{"gaps":[{"stream":7,"first_sequence":1000,"events":2,"cause":"source"}]}"#;
    assert_eq!(std::str::from_utf8(&frame[64..]).unwrap(), json);
    let longest = vec![gap(1, SEQUENCE_END - 1, 1), gap(7, 5, 3), gap(1, SEQUENCE_END, 0), gap(7, 8, 1)];
    let fault = |gaps: &[Gap]| Missing { gaps: gaps.to_vec() }.check().map_err(|what| what.to_string());
    assert_eq!(fault(&longest[..2]), Ok(()));
    assert_eq!(fault(&[longest[1], longest[3], longest[0]]), Ok(()));
    assert!(fault(&[]).unwrap_err().contains("0 gaps"));
    assert!(fault(&longest).unwrap_err().contains("are none, or reach 2^63"));
    assert!(fault(&[gap(1, SEQUENCE_END - 1, 2)]).unwrap_err().contains("reach 2^63"));
    assert!(fault(&[gap(1, 5, u64::MAX)]).unwrap_err().contains("reach 2^63"));
    assert!(fault(&[gap(1, 5, 3), gap(1, 7, 1)]).unwrap_err().contains("not in order"));
    assert!(fault(&[gap(65_536, 5, 3)]).unwrap_err().contains("above 65535"));
    let many: Vec<Gap> = (0..=MISSING_GAPS_MAX as u64).map(|n| gap(1, n, 1)).collect();
    assert!(fault(&many).unwrap_err().contains("10001 gaps"));
    assert_eq!(fault(&many[1..]), Ok(()));
}
