//! What `qualify` says of a small volume in memory behind a shaped link: it is full before the end of a run.
//! The link makes it slow, so that little is written.
use keepup_testkit::powers::without_direct_io;
use keepup_testkit::root::{ShapedNamespace, SmallDisk, allowed, skip};
use keepup_testkit::{Program, Run};
use serde_json::Value;

use crate::common::{TestDirectory, directory, json, keepup, squeezed};

/// Size of the volume.
const MEBIBYTES: u32 = 512;
/// Rate of the shaped link, in megabits per second: twenty times the required rate.
const LINK: u32 = 80;

const QUALIFY: &str = "qualify ./small.toml --volume disk --quick --soak 2s --pool '32 MiB' \
                       --max-write '200 MB' --json";

/// A small volume and a slow way to it.
struct SmallVolume {
    _disk: SmallDisk,
    namespace: ShapedNamespace,
    // Removed last.
    place: TestDirectory,
}

impl SmallVolume {
    /// A volume for a profile with these requirements; `None` with a message where it cannot be had.
    fn create(test: &str, requirements: &str) -> Option<Self> {
        if !allowed(test) {
            return None;
        }
        let place = directory();
        let profile = format!(
            "name = \"small\"\ntitle = \"small events\"\n[event]\nsize = \"64 KiB\"\n\
            [source]\nrate = \"8 /s\"\nbuffer = \"64 MiB\"\nstreams = 1\ntransport = \"tcp\"\n\
            [run]\nduration = \"1 h\"\n{requirements}[record]\nsegment = \"64 MiB\"\n"
        );
        std::fs::write(place.path().join("small.toml"), profile).unwrap();
        let made = SmallDisk::mount(&place.path().join("disk"), MEBIBYTES).and_then(|disk| {
            let name = format!("{}-{}", test.replace('_', "-"), std::process::id());
            Ok((disk, ShapedNamespace::create(&name, LINK)?))
        });
        match made {
            Ok((disk, namespace)) => Some(Self { _disk: disk, namespace, place }),
            Err(why) => {
                skip(test, &why);
                None
            }
        }
    }

    fn qualify(&self) -> Run {
        let (name, program) = (self.namespace.name(), env!("CARGO_BIN_EXE_keepup"));
        let script = format!("exec ip netns exec {name} {program} {QUALIFY}");
        Program::start("sh", &["-c", &script], self.place.path()).wait()
    }
}

fn texts<'a>(found: &'a Value, key: &str) -> Vec<&'a str> {
    found[key].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[test]
#[ignore = "system"]
fn a_volume_that_does_not_hold_a_run_limits_the_verdict() {
    let Some(small) = SmallVolume::create("full_limits", "") else { return };
    let run = small.qualify();
    let found = json(&run);
    assert_eq!((run.code(), &found["verdict"]), (6, &"FIT WITH LIMITS".into()), "{run:#?}");
    let reasons = texts(&found, "verdict_reasons");
    assert!(reasons.iter().any(|reason| reason.starts_with("the volumes are full after ")), "{reasons:#?}");
    let storage = &found["storage"];
    let (run_bytes, usable) =
        (storage["run_bytes"].as_f64().unwrap(), storage["usable_bytes"].as_f64().unwrap());
    assert!(run_bytes > 3600.0 * 8.0 * 65_536.0, "files are larger than their events: {storage:#}");
    let hours = storage["hours_of_storage_left_at_required"].as_f64().unwrap();
    assert!((hours - usable / run_bytes).abs() < 0.001, "{storage:#}");
    // A twentieth is reserved.
    let total = f64::from(MEBIBYTES) * 1_048_576.0;
    assert!((0.94 * total..0.951 * total).contains(&usable), "{storage:#}");
}

#[test]
#[ignore = "system"]
fn a_volume_that_must_hold_a_run_and_does_not_is_not_fit() {
    let Some(small) = SmallVolume::create("full_unfit", "[require]\nwhole_run = true\n") else { return };
    let run = small.qualify();
    let found = json(&run);
    assert_eq!((run.code(), &found["verdict"]), (1, &"NOT FIT".into()), "{run:#?}");
    let reasons = texts(&found, "verdict_reasons");
    assert!(reasons[0].starts_with("the volumes are full after "), "{reasons:#?}");
    let qualified = found["qualified_bytes_per_second"].as_f64().unwrap();
    assert!(qualified >= found["required_bytes_per_second"].as_f64().unwrap(), "the rate held: {found:#}");
}

/// Without direct I/O, data passes through the page cache, and a file system in memory keeps it there.
#[test]
#[ignore = "system"]
fn a_qualification_through_the_page_cache_says_so() {
    let test = "buffered";
    let Some(small) = SmallVolume::create(test, "") else { return };
    let run = match without_direct_io(|| small.qualify()) {
        Ok(run) => run,
        Err(why) => return skip(test, &why),
    };
    let found = json(&run);
    assert_eq!((run.code(), &found["verdict"]), (6, &"FIT WITH LIMITS".into()), "{run:#?}");
    let buffers = found["engine"]["buffers"].as_str().unwrap();
    assert!(buffers.ends_with("buffered"), "{found:#}");
    let limits = texts(&found, "limits");
    let through = "data was written through the page cache, not directly to the disks";
    assert!(limits.contains(&through), "{limits:#?}");
    assert!(!limits.iter().any(|limit| limit.contains("writes were direct")), "{limits:#?}");
    assert!(limits.iter().any(|limit| limit.starts_with("read back ")), "{limits:#?}");
    let result = found["result_directory"].as_str().unwrap();
    let page = keepup(small.place.path(), &["report", result]);
    assert!(squeezed(&page.stdout).contains(through), "{page:#?}");
}
