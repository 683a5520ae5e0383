//! Measured throughput of a link of known rate, and measured rate of a paced sender.
use keepup_testkit::rule::{FOUR_OF_FOURTEEN, TWO_OF_SEVEN, good_if};
use serde_json::Value;

use crate::common::busy_directory;
use crate::net::{across, balanced, consistent, done, net, number, serve, wired};

/// Received bytes per second of the only flow.
fn received(found: &Value) -> f64 {
    let received = found.pointer("/runs/0/flows/0/received").unwrap();
    number(received, "/bytes") / number(received, "/seconds")
}

/// Defect: headers are counted as payload (4.6 % more), or part of the time is not counted.
#[test]
#[ignore = "measured"]
fn the_throughput_of_a_shaped_link_is_its_rate() {
    let place = busy_directory();
    let Some((cable, _server)) = wired("a_shaped_link", &place, "r") else { return };
    cable.shape(0, 200).unwrap();
    // tbf counts frames: 1448 bytes of payload in 1514 (MTU 1500, time stamps).
    let payload = 200e6 / 8.0 * 1448.0 / 1514.0;
    let time = ["--time", "2 s", "--congestion", "reno"];
    FOUR_OF_FOURTEEN.check("the rate of the link, as a part of what it carries", || {
        let found = done(&across(&place, &cable, "tcp", &time).wait());
        interfaces(&found["runs"][0]);
        let part = received(&found) / payload;
        good_if((part - 1.0).abs() < 0.02, part)
    });
}

/// Checks the information about both ends, at any rate.
fn interfaces(run: &Value) {
    assert_eq!(number(run, "/flows/0/sender/path_mtu_bytes"), 1500.0);
    // The receiver's namespace has its own kernel counters, but the same processors.
    assert_eq!(run["ends"][0]["host"], run["ends"][1]["host"]);
    for end in run["ends"].as_array().unwrap() {
        let interface = &end["interfaces"][0];
        let (name, mtu) = (&interface["name"], number(interface, "/mtu_bytes"));
        assert_eq!((name, mtu), (&"cable".into(), 1500.0), "{end:#}");
        assert!(interface["tso"].is_boolean() && interface["gro"].is_boolean(), "{end:#}");
    }
}

/// Defect: the search stops a grid step too early, or reports a rate above that of the link as free of loss.
#[test]
#[ignore = "measured"]
fn the_highest_rate_without_loss_is_that_of_the_shaped_link() {
    let place = busy_directory();
    let Some((cable, _server)) = wired("the_highest_rate_without_loss", &place, "k") else { return };
    cable.shape(0, 200).unwrap();
    let search = ["--search", "--quick", "--soak", "3 s", "--max-rate", "32 MB/s"];
    // 1400 bytes of payload in a frame of 1442. The shaper's burst matters in short trials.
    let payload = 200e6 / 8.0 * 1400.0 / 1442.0;
    TWO_OF_SEVEN.check("knee from and to, and what is safe, as parts of what the link carries", || {
        let found = done(&across(&place, &cable, "udp", &search).wait());
        found["runs"].as_array().unwrap().iter().for_each(|run| balanced(&run["ledger"]));
        let [lower, upper, safe] = ["knee_lower", "knee_upper", "safe"].map(|key| {
            let rate = found["finding"][format!("{key}_bytes_per_second")].as_f64();
            rate.unwrap_or(f64::NAN) / payload
        });
        let is_knee = (0.94..1.03).contains(&lower) && upper > lower && upper < 1.06;
        good_if(is_knee && safe <= lower && safe > 0.8, [lower, upper, safe])
    });
}

/// Defect: a tenth of the due datagrams is dropped.
#[test]
#[ignore = "measured"]
fn a_paced_sender_reaches_its_rate() {
    let place = busy_directory();
    let (_server, address) = serve(place.path(), "127.0.0.1:0");
    for kind in ["udp", "tcp"] {
        let paced = ["--time", "1 s", "--rate", "8 MB/s"];
        FOUR_OF_FOURTEEN.check(&format!("{kind} at 8 MB/s, as a part of that"), || {
            let found = done(&net(place.path(), kind, &[&address], &paced));
            consistent(&found["runs"][0]);
            let part = received(&found) / 8e6;
            good_if((part - 1.0).abs() < 0.03, part)
        });
    }
}
