//! Several recorders together and each alone, with links of a known rate.
use keepup_results::FleetBottleneck;
use serde_json::Value;

use crate::common::{busy_directory, json, until};
use crate::fleet::qualify::{LINK_MEGABITS, Site, stored, summary};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Rates of recorders as shares of their own knees, from "...: HOST RATE of RATE alone, ...".
fn shares_of_own(evidence: &str) -> impl Iterator<Item = f64> {
    let (_, hosts) = evidence.rsplit_once(": ").unwrap();
    hosts.split(", ").map(|host| {
        let words: Vec<&str> = host.split(' ').collect();
        let [_, rate, _, "of", alone, _, "alone"] = words[..] else { panic!("{host}") };
        rate.parse::<f64>().unwrap() / alone.parse::<f64>().unwrap()
    })
}

#[test]
#[ignore = "measured"]
fn two_recorders_carry_twice_what_one_does() {
    let Some(site) = Site::create("twice", busy_directory) else { return };
    let run = site.start(&["--each"]).wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    assert_eq!(found["verdict"], "FIT", "{found:#}");
    assert_eq!(summary(&stored(site.here())), found);
    let both = number(&found["knee"]["lower_bytes_per_second"]);
    // Each source has a link: two carry more than one can, and one no more than its own, apart from what
    // buffers hold in a trial of a second. On a slow machine every search may end too low.
    let link = f64::from(LINK_MEGABITS) * 1e6 / 8.0;
    assert!((1.4..2.2).contains(&(both / link)), "{found:#}");
    for host in found["hosts"].as_array().unwrap() {
        let alone = number(&host["alone"]["lower_bytes_per_second"]);
        assert!((0.2..1.2).contains(&(alone / link)), "{both} together, {host:#}");
        assert!(number(&host["clock"]["error_ns"]) > 0.0, "{host:#}");
        assert!(number(&host["start_delay_seconds_max"]) > 0.0, "{host:#}");
    }
    // No more than the links carry.
    assert!(number(&found["qualified_bytes_per_second"]) < 2.0 * link, "{found:#}");
    // The links are limited, not the switch, and no recorder alone. Recorders also share the processors of
    // this machine: then those that failed must have failed clearly below what they carried alone, or have
    // waited for a processor.
    let limit = &found["bottleneck"];
    let [stage, evidence] = ["stage", "evidence"].map(|key| limit[key].as_str().unwrap());
    let is_shared = stage == FleetBottleneck::SHARED && shares_of_own(evidence).all(|share| share < 0.905);
    let waited = stage.ends_with(", processor") && evidence.contains("were runnable without a CPU");
    assert!(is_shared || waited || stage.ends_with(", network"), "{limit:#}");
    let share = number(&found["control"]["bytes"]) / number(&found["control"]["payload_bytes"]);
    assert!(share > 0.0 && share < 0.01, "{share}");
    for recorder in &site.fleet.hosts[2..] {
        assert_eq!(std::fs::read_dir(site.here().join(recorder)).unwrap().count(), 0);
    }
    until("agents are left", || site.fleet.gone());
}
