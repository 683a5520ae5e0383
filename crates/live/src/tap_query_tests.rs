//! Valid and invalid queries.
use keepup_results::live::TapFilter;

use super::TapQuery;

#[test]
fn queries_are_parsed_and_errors_are_described() {
    let asked = |streams: &[u32], every, per_second, preview| {
        let filter = TapFilter { streams: streams.to_vec(), every, per_second };
        Ok(TapQuery { filter, preview })
    };
    assert_eq!(TapQuery::parse(""), asked(&[], 1, None, None));
    let query = "stream=3&stream=7&every=10&rate=2.5&preview=640";
    assert_eq!(TapQuery::parse(query), asked(&[3, 7], 10, Some(2.5), Some(640)));
    for bad in ["stream=x", "every=0", "rate=0", "rate=nan", "rate=-1", "preview=0", "straem=1", "stream=-1"]
    {
        assert!(TapQuery::parse(bad).is_err(), "{bad}");
    }
    assert!(TapQuery::parse(&"stream=1&".repeat(1025)).unwrap_err().contains("1024"));
}
