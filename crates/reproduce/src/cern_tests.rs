//! The note's campaign, and its page of a made-up result that was measured elsewhere.
use std::path::{Path, PathBuf};

use keepup_campaign::{Cell, Forecasts, PaperSettings, State, parse, summarise};
use keepup_results::{CampaignSummary, Ended, RegisterDevice, RegisterPoint, RegisterRun, TestSummary as _};

use super::*;
use crate::testing::{begun, full_request};
use crate::{campaign_text, names};

fn request(targets: &[&str], scale: f64) -> PaperRequest {
    let targets = targets.iter().map(|target| (*target).to_owned()).collect();
    PaperRequest { targets, scale, ..full_request() }
}

/// A way with what it takes before the first register, and for each.
fn method(name: &str, each_us: f64, set_up_us: f64) -> RegisterMethod {
    let point = |depth: u64| RegisterPoint {
        depth,
        transfers_per_trial: 1,
        seconds: vec![(set_up_us + each_us * depth as f64) / 1e6; 5],
        cpu_seconds: vec![1e-6; 5],
    };
    RegisterMethod {
        name: name.into(),
        writes: false,
        words_max: None,
        points: [1, 0x100, 0x10000, 0x80000].map(point).into(),
        left_out: Vec::new(),
        loop_taken_off: false,
        single: None,
    }
}

/// A result of a board with single accesses of 2.42 us and DMA of 0.35 us after 2 ms, in a file.
fn stored(directory: &Path, device: RegisterDevice) -> PathBuf {
    let mut summary = RegisterSummary::begun(&begun());
    summary.run = Some(RegisterRun {
        target: "pci:0000:04:00.0/bar0".into(),
        width_bits: 32,
        offset: 0,
        is_fifo: false,
        device,
        cpu: None,
        clock_ns: 20.0,
        loop_seconds_per_register: None,
        all_ones: false,
        methods: vec![method("mmap", 2.42, 0.0), method("dma", 0.35, 2000.0)],
    });
    summary.break_evens = vec![RegisterBreakEven {
        simple: "mmap".into(),
        way: "dma".into(),
        elapsed: RegisterVerdict::From { registers: 966.2, lower: 960.0, upper: 970.0 },
        cpu: RegisterVerdict::Always,
    }];
    let path = directory.join("crate-7.json");
    std::fs::write(&path, serde_json::to_string(&summary).unwrap()).unwrap();
    path
}

fn page(with: Vec<PathBuf>) -> PaperPage {
    let campaign = parse(&campaign_text(&Cern, &request(&[], 1.0)).unwrap(), "test", &names()).unwrap();
    let state = State::new(campaign, Forecasts::default());
    let summary: CampaignSummary = summarise(&state, &begun(), None, Ended::default());
    let table = PaperSettings { name: "cern-vme".into(), scale: 1.0, with };
    Cern.page(&Reproduced::read(&table, &summary, Path::new("/nowhere")))
}

#[test]
fn targets_are_given_or_stand_in() {
    let commands = |targets: &[&str], scale| -> Vec<String> {
        let text = campaign_text(&Cern, &request(targets, scale)).unwrap();
        parse(&text, "test", &names()).unwrap().cells().iter().map(Cell::command).collect()
    };
    let all = |target: &str, ms| format!("keepup register compare {target} --time '{ms} ms'");
    let one = |target: &str, ms| {
        format!("keepup register read {target} --depth 1 --generic --time '{ms} ms' --width 16")
    };
    // Registers of IPbus have 32 bits.
    assert_eq!(commands(&[], 1.0), [all("ram", 30000), one("ram", 30000), all("ipbus:self", 30000)]);
    let simulated = ("vfio:0000:00:04.0/bar0".to_owned(), Some("edu".to_owned()));
    let prepared = PaperRequest { simulated: vec![simulated], ..request(&[], 1.0) };
    let text = campaign_text(&Cern, &prepared).unwrap();
    let cells = parse(&text, "test", &names()).unwrap().cells().iter().map(Cell::command).collect::<Vec<_>>();
    assert!(cells[3].contains("compare vfio:0000:00:04.0/bar0 --profile edu"), "{cells:?}");
    // Its registers have 32 bits, too.
    assert_eq!(cells.len(), 4);
    let vme = "vme:/dev/bus/vme/m0";
    assert_eq!(commands(&[vme], 0.01), [all(vme, 2000), one(vme, 2000)]);
}

#[test]
fn a_board_measured_elsewhere_stands_beside_the_published_ones() {
    let directory = tempfile::tempdir().unwrap();
    let page = page(vec![stored(directory.path(), RegisterDevice::default())]);
    let dma = &page.tables[4];
    let row = |name: &str| dma.rows.iter().find(|row| row.name.ends_with(name)).unwrap();
    // 0x10000 words of 4 bytes in 2 ms + 0.35 us each: 0.3805 us, 10.03 MiB/s.
    let ours = row("bar0, dma");
    assert!(ours.is_here && ours.name.contains("crate-7.json"), "{ours:?}");
    assert!((ours.cells[0].value.unwrap() - 0.3805).abs() < 1e-3, "{ours:?}");
    assert!((ours.cells[1].value.unwrap() - 10.03).abs() < 0.01, "{ours:?}");
    let theirs = row("0x10000 words of 4 bytes, DMA");
    assert_eq!((theirs.cells[0].value, theirs.cells[1].value), (Some(0.35), Some(10.89)));
    assert!(
        page.answers[2].here.contains("dma is faster than mmap from 967 registers"),
        "{:?}",
        page.answers
    );
    assert!(!page.limits.iter().any(|limit| limit.contains("simulated")), "{:?}", page.limits);
    let chart = &page.curves[0];
    let single = chart.series.iter().find(|series| series.name == "L865 (MEN A20), Linux, single accesses");
    assert_eq!(single.unwrap().points, [(1.0, 3.1), (256.0, 2.33), (65536.0, 2.42), (524_288.0, 2.42)]);
    let eighteen = page.claims.iter().find(|claim| claim.says.contains("1800")).unwrap();
    assert!(eighteen.is_contradicted && eighteen.follows.contains("966"), "{eighteen:?}");
}

#[test]
fn what_is_no_hardware_is_called_so() {
    for (device, word) in [
        (RegisterDevice { is_simulated: true, ..RegisterDevice::default() }, "(simulated)"),
        (RegisterDevice { is_virtual: Some(true), ..RegisterDevice::default() }, "(virtual machine)"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let page = page(vec![stored(directory.path(), device)]);
        let here = page.tables.iter().flat_map(|table| &table.rows).filter(|row| row.is_here);
        assert!(here.map(|row| assert!(row.name.contains(word), "{row:?}")).count() > 0);
        assert!(page.limits.iter().any(|limit| limit.contains("not the speed")), "{:?}", page.limits);
    }
}

#[test]
fn without_results_nothing_is_claimed() {
    let page = page(Vec::new());
    let published: Vec<&str> = page.answers.iter().map(|answer| answer.published.as_str()).collect();
    assert_eq!(
        published,
        [
            "3.1 us on the L865, 3.6 us on the PPC4, with their own functions.",
            "1.33x on the L865, 4x on the PPC4.",
            "DMA above 1800 words; its own numbers give another value.",
            "Not significantly: 3.1 and 3.2 us on the L865, 3.6 and 4.2 us on the PPC4.",
        ]
    );
    assert!(page.answers.iter().all(|answer| answer.here == "not measured"), "{:?}", page.answers);
    assert!(page.tables.iter().flat_map(|table| &table.rows).all(|row| !row.is_here));
}
