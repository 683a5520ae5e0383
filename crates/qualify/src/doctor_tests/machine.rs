//! Readings of a simulated machine for the tests of the rules.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use keepup_measure::environment::{Disk, Link, Reading};
use keepup_measure::settings::{CoreList, IdleState, Interface, Interrupt, Limit, Limits, Node, Settings};
use keepup_results::DiskWear;
use keepup_workload::doctor::{Card, Port, Readings};

/// A machine with a card and a volume and no readable settings.
pub(super) fn unreadable() -> Readings {
    let nowhere = Path::new("/no/such/tree");
    let card = Card {
        ring: none(),
        ring_max: none(),
        queues_max: none(),
        has_combined_queues: none(),
        pause_receive: none(),
        pause_send: none(),
        gro: none(),
        lro: none(),
        gso: none(),
        tso: none(),
        receive_checksum: none(),
    };
    let interface = Interface { is_card: true, ..Interface::collect(nowhere, "eth0") };
    Readings {
        settings: Settings::collect(nowhere, &[PathBuf::from("/no/such/volume")]),
        interfaces: BTreeMap::from([("eth0".into(), Port { interface, card })]),
        chosen: Some("eth0: the fastest card that is up".into()),
        route: None,
        wear: BTreeMap::from([("nvme0n1".into(), none())]),
    }
}

pub(super) fn none<T>() -> Reading<T> {
    Reading::NotReadable("made up".into())
}

pub(super) fn value<T>(value: T) -> Reading<T> {
    Reading::Value(value)
}

pub(super) fn cores(text: &str) -> CoreList {
    CoreList::parse(text).unwrap()
}

/// A two-node machine tuned for a fast UDP detector.
pub(super) fn tuned() -> Readings {
    let mut readings = unreadable();
    let settings = &mut readings.settings;
    settings.sockets.rmem_max = value(1 << 30);
    settings.sockets.udp_mem = value([1 << 20, 2 << 20, 4 << 20]);
    settings.sockets.tcp_rmem = value([4096, 131_072, 64 << 20]);
    settings.sockets.netdev_max_backlog = value(250_000);
    settings.sockets.netdev_budget = value(300);
    settings.sockets.netdev_budget_usecs = value(8000);
    settings.sockets.softnet = value(keepup_measure::net::SoftnetCounters::default());
    let processors = &mut settings.processors;
    processors.online = value(cores("0-15"));
    processors.governor = value("performance".into());
    processors.frequency_driver = value("acpi-cpufreq".into());
    processors.may_boost = value(true);
    processors.isolated = value(cores(""));
    processors.idle_states =
        vec![IdleState { name: "C6".into(), latency_us: value(133), is_off: value(true) }];
    for (number, list, distances) in [(0, "0-7", vec![10, 21]), (1, "8-15", vec![21, 10])] {
        let node = Node { cores: value(cores(list)), distances: value(distances) };
        processors.nodes.insert(number, node);
    }
    let memory = &mut settings.memory;
    memory.total_bytes = value(64 << 30);
    memory.page_bytes = 4096;
    memory.transparent_huge_pages = value("madvise".into());
    (memory.huge_page_bytes, memory.huge_pages_free) = (value(2 << 20), value(0));
    (memory.swappiness, memory.swap_used_bytes) = (value(60), value(0));
    (memory.zone_reclaim_mode, memory.numa_balancing) = (value(0), value(0));
    (memory.dirty_bytes, memory.dirty_background_bytes) = (value(0), value(1 << 30));
    (memory.dirty_ratio_percent, memory.dirty_background_ratio_percent) = (value(20), value(0));
    settings.process.descriptors = value(Limits { soft: Limit::At(1024), hard: Limit::At(500_000) });
    settings.process.locked_bytes = value(Limits { soft: Limit::Unlimited, hard: Limit::Unlimited });
    (settings.process.may_lock, settings.process.is_admin) = (value(false), value(false));
    settings.process.io_uring_disabled = value(0);
    volume(&mut readings);
    card(&mut readings);
    readings.wear.insert("nvme0n1".into(), value(unworn()));
    readings
}

/// Wear of a disk in its first year.
pub(super) fn unworn() -> DiskWear {
    DiskWear {
        disk: "nvme0n1".into(),
        used_percent: 12,
        spare_percent: 100,
        spare_threshold_percent: 10,
        is_degraded: false,
        written_bytes: Some(80_000_000_000_000),
    }
}

pub(super) fn volume(readings: &mut Readings) {
    let volume = &mut readings.settings.volumes[0];
    volume.basics.fs_type = value("xfs".into());
    volume.basics.mount_options = value("rw,relatime".into());
    volume.basics.mount_point = value("/data".into());
    volume.basics.memory_backed = value(false);
    let free = keepup_measure::environment::VolumeFree { bytes: 1 << 50, inodes: None, fill_percent: 1.0 };
    volume.basics.free = value(free);
    let json = serde_json::json!({"not_readable": "made up"});
    let disk = serde_json::json!({
        "model": json, "size_bytes": json, "rotational": {"value": false}, "scheduler": {"value": "none"},
        "logical_block_bytes": json, "physical_block_bytes": json, "discard_bytes_max": json,
        "write_cache": {"value": "write back"},
    });
    let disk: Disk = serde_json::from_value(disk).unwrap();
    let disk = Disk { link: Some(link(8.0, 4, 4)), ..disk };
    volume.basics.disks.insert("nvme0n1".into(), disk);
    let queue = keepup_measure::settings::Queue {
        requests: value(1023),
        request_kib_max: value(1280),
        hardware_kib_max: value(2048),
        node: value(1),
        vendor: none(),
    };
    volume.queues.insert("nvme0n1".into(), queue);
    volume.md = None;
}

pub(super) fn link(speed: f64, lanes: u64, lanes_max: u64) -> Link {
    Link {
        gigatransfers: value(speed),
        lanes: value(lanes),
        gigatransfers_max: value(speed),
        lanes_max: value(lanes_max),
    }
}

pub(super) fn card(readings: &mut Readings) {
    let port = port(readings);
    port.interface.basics.state = value("up".into());
    port.interface.basics.speed_mbit = value(100_000);
    port.interface.basics.mtu = value(9000);
    port.interface.node = value(1);
    port.interface.local_cores = value(cores("8-15"));
    port.interface.receive_queues = value(8);
    port.interface.is_spread = value(false);
    port.interface.interrupts = (40..48)
        .map(|number| Interrupt {
            number,
            name: format!("virtio0-input.{number}"),
            count: 1,
            cores: Some(cores(&(number - 32).to_string())),
        })
        .collect();
    port.interface.link = link(8.0, 16, 16);
    (port.card.ring, port.card.ring_max) = (value(4096), value(8192));
    (port.card.queues_max, port.card.has_combined_queues) = (value(16), value(true));
    (port.card.pause_receive, port.card.pause_send) = (value(true), value(true));
    (port.card.gro, port.card.receive_checksum) = (value(true), value(true));
}

pub(super) fn port(readings: &mut Readings) -> &mut Port {
    readings.interfaces.get_mut("eth0").unwrap()
}

pub(super) fn disk(readings: &mut Readings) -> &mut keepup_measure::settings::Queue {
    readings.settings.volumes[0].queues.get_mut("nvme0n1").unwrap()
}
