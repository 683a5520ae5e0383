//! JSON and limits of declared losses.

use super::*;
use crate::ledger::LossCause;
use crate::rejected::{RejectReason, RejectUnit};

#[test]
fn missing_has_the_documented_json_and_limits() {
    let gap =
        |stream, first_sequence, events| Gap { stream, first_sequence, events, cause: LossCause::Source };
    let declare = |gaps: &[Gap]| Missing { gaps: gaps.to_vec(), rejected: Vec::new() };
    let frame = declare(&[gap(7, 1000, 2)]).to_frame().unwrap();
    let json = r#"{"gaps":[{"stream":7,"first_sequence":1000,"events":2,"cause":"source"}]}"#;
    assert_eq!(std::str::from_utf8(&frame[64..]).unwrap(), json);
    let longest = vec![gap(1, SEQUENCE_END - 1, 1), gap(7, 5, 3), gap(1, SEQUENCE_END, 0), gap(7, 8, 1)];
    let fault = |gaps: &[Gap]| declare(gaps).check().map_err(|what| what.to_string());
    assert_eq!(fault(&longest[..2]), Ok(()));
    assert_eq!(fault(&[longest[1], longest[3], longest[0]]), Ok(()));
    assert!(fault(&[]).unwrap_err().contains("neither gaps"));
    assert!(fault(&longest).unwrap_err().contains("are none, or reach 2^63"));
    assert!(fault(&[gap(1, SEQUENCE_END - 1, 2)]).unwrap_err().contains("reach 2^63"));
    assert!(fault(&[gap(1, 5, u64::MAX)]).unwrap_err().contains("reach 2^63"));
    assert!(fault(&[gap(1, 5, 3), gap(1, 7, 1)]).unwrap_err().contains("not in order"));
    assert!(fault(&[gap(65_536, 5, 3)]).unwrap_err().contains("above 65535"));
    let many: Vec<Gap> = (0..=MISSING_GAPS_MAX as u64).map(|n| gap(1, n, 1)).collect();
    assert!(fault(&many).unwrap_err().contains("10001 gaps"));
    assert_eq!(fault(&many[1..]), Ok(()));
}

#[test]
fn rejected_data_have_the_documented_json_and_limits() {
    let row = |source: &str| Rejected {
        source: source.to_owned(),
        reason: RejectReason::Late,
        unit: RejectUnit::Packet,
        count: 3,
        is_foreign: false,
        detail: "packet 7 came after 9".to_owned(),
    };
    let declare = |rejected: Vec<Rejected>| Missing { gaps: Vec::new(), rejected };
    let frame = declare(vec![row("udp://:4000")]).to_frame().unwrap();
    let json = concat!(
        r#"{"gaps":[],"rejected":[{"source":"udp://:4000","reason":"late","unit":"packet","count":3,"#,
        r#""detail":"packet 7 came after 9"}]}"#
    );
    assert_eq!(std::str::from_utf8(&frame[64..]).unwrap(), json);
    let many: Vec<Rejected> = (0..=ROWS_MAX).map(|n| row(&n.to_string())).collect();
    assert!(declare(many.clone()).check().unwrap_err().to_string().contains("257 rows"));
    assert_eq!(declare(many[1..].to_vec()).check(), Ok(()));
}
