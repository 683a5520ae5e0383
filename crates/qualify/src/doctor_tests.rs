//! Each rule fires exactly where its setting matters.
#[path = "doctor_tests/machine.rs"]
mod machine;

use std::collections::BTreeMap;
use std::time::Duration;

use keepup_measure::settings::{Interrupt, Limit, Limits, Md, Node};
use keepup_plan::{Transport, builtin, builtin_names};
use keepup_results::DiskWear;
use keepup_workload::doctor::Route;

use self::machine::{cores, disk, link, none, port, tuned, unreadable, unworn, value};
use super::*;

fn udp() -> Needs {
    Needs { run_bytes: Some(1 << 40), ..Needs::of_no_one(STALL) }
}

fn tcp() -> Needs {
    Needs { transport: Transport::Tcp, ..udp() }
}

/// 20 MB/s over one connection: hardly any setting matters.
fn slow() -> Needs {
    Needs { rate: 20e6, peak: 20e6, ..tcp() }
}

/// Findings that are not fine after a change of the tuned machine, by setting.
fn found(needs: &Needs, change: impl FnOnce(&mut Readings)) -> BTreeMap<String, DoctorFinding> {
    let mut readings = tuned();
    change(&mut readings);
    let findings = judge(&readings, needs).into_iter().filter(|f| f.severity != DoctorSeverity::Fine);
    findings.map(|finding| (finding.setting.clone(), finding)).collect()
}

/// The only finding caused by a change.
fn only(needs: &Needs, setting: &str, change: impl FnOnce(&mut Readings)) -> DoctorFinding {
    let mut found = found(needs, change);
    let finding = found.remove(setting).unwrap_or_else(|| panic!("no {setting} in {found:#?}"));
    assert!(found.is_empty(), "beside {setting}: {found:#?}");
    assert!(!finding.why.is_empty() && !finding.source.is_empty(), "{finding:?}");
    finding
}

fn harmful(needs: &Needs, setting: &str, change: impl FnOnce(&mut Readings)) -> DoctorFinding {
    let finding = only(needs, setting, change);
    assert_eq!(finding.severity, DoctorSeverity::Harmful, "{finding:?}");
    finding
}

fn look(needs: &Needs, setting: &str, change: impl FnOnce(&mut Readings)) -> DoctorFinding {
    let finding = only(needs, setting, change);
    assert_eq!(finding.severity, DoctorSeverity::WorthALook, "{finding:?}");
    finding
}

fn quiet(needs: &Needs, change: impl FnOnce(&mut Readings)) {
    let found = found(needs, change);
    assert!(found.is_empty(), "{found:#?}");
}

fn command(finding: &DoctorFinding) -> &str {
    finding.command.as_deref().unwrap_or_default()
}

#[test]
fn a_tuned_machine_has_nothing_to_change() {
    for needs in [udp(), tcp(), slow()] {
        quiet(&needs, |_| {});
        let fine = judge(&tuned(), &needs);
        assert!(fine.iter().all(|f| f.command.is_none() && f.value.is_some()), "{fine:#?}");
    }
}

#[test]
fn nothing_is_called_fine_that_was_not_read() {
    for needs in [udp(), tcp(), slow()] {
        let findings = judge(&unreadable(), &needs);
        assert!(!findings.is_empty());
        for finding in findings {
            assert_eq!(finding.severity, DoctorSeverity::NotJudged, "{finding:?}");
            assert!(finding.command.is_none() && finding.value.is_none(), "{finding:?}");
        }
    }
}

#[test]
fn the_worst_comes_first() {
    let mut readings = tuned();
    readings.settings.sockets.rmem_max = value(212_992);
    readings.settings.processors.may_boost = value(false);
    readings.settings.sockets.udp_mem = none();
    let order: Vec<_> = judge(&readings, &udp()).iter().map(|finding| finding.severity).collect();
    assert!(order.is_sorted() && order[0] == DoctorSeverity::Harmful, "{order:?}");
}

#[test]
fn a_receive_buffer_bridges_a_stall() {
    let small = |readings: &mut Readings| readings.settings.sockets.rmem_max = value(212_992);
    // 100 ms of 1 GB/s are 95.4 MiB.
    let finding = harmful(&udp(), "net.core.rmem_max", small);
    assert_eq!(command(&finding), "sysctl -w net.core.rmem_max=100663296");
    let longer = Needs { stall: Duration::from_secs(1), ..udp() };
    let enough = |readings: &mut Readings| readings.settings.sockets.rmem_max = value(200 << 20);
    assert_eq!(
        command(&harmful(&longer, "net.core.rmem_max", enough)),
        "sysctl -w net.core.rmem_max=1000341504"
    );
    quiet(&udp(), enough);
    quiet(&Needs { connections: 500, ..udp() }, |readings| {
        readings.settings.sockets.rmem_max = value(212_992);
    });
    quiet(&tcp(), small);
}

#[test]
fn small_datagrams_take_more_of_a_buffer_than_their_bytes() {
    let enough = |readings: &mut Readings| readings.settings.sockets.rmem_max = value(10 << 20);
    let large = Needs { rate: 50e6, peak: 50e6, ..udp() };
    quiet(&large, enough);
    let small = Needs { event_bytes: 200.0, ..large };
    assert!(found(&small, enough).contains_key("net.core.rmem_max"));
}

#[test]
fn all_udp_sockets_together_need_buffers() {
    let finding = harmful(&udp(), "net.ipv4.udp_mem", |r| r.settings.sockets.udp_mem = value([10, 20, 30]));
    assert!(command(&finding).ends_with(" 49152'"), "{finding:?}");
    quiet(&tcp(), |r| r.settings.sockets.udp_mem = value([10, 20, 30]));
}

#[test]
fn a_tcp_window_covers_the_round_trip() {
    let set = |most| move |r: &mut Readings| r.settings.sockets.tcp_rmem = value([4096, 131_072, most]);
    let finding = look(&tcp(), "net.ipv4.tcp_rmem", set(1_500_000));
    assert_eq!(command(&finding), "sysctl -w net.ipv4.tcp_rmem='4096 131072 2097152'");
    harmful(&tcp(), "net.ipv4.tcp_rmem", set(500_000));
    quiet(&tcp(), set(6_291_456));
    quiet(&slow(), set(500_000));
    quiet(&udp(), set(500_000));
}

#[test]
fn the_queue_of_a_core_counts_only_where_it_is_used() {
    let short = |r: &mut Readings| r.settings.sockets.netdev_max_backlog = value(1000);
    quiet(&udp(), short);
    let finding = look(&udp(), "net.core.netdev_max_backlog", |r| {
        short(r);
        port(r).interface.is_spread = value(true);
    });
    assert_eq!(command(&finding), "sysctl -w net.core.netdev_max_backlog=2000");
}

#[test]
fn exhausted_receive_budgets_are_reported() {
    let counted = |squeezed| {
        move |r: &mut Readings| {
            let counters = keepup_measure::net::SoftnetCounters { processed: 10_000, dropped: 0, squeezed };
            r.settings.sockets.softnet = value(counters);
        }
    };
    look(&udp(), "net.core.netdev_budget", counted(100));
    quiet(&udp(), counted(1));
    quiet(&slow(), counted(100));
}

#[test]
fn a_route_that_takes_less_than_the_interface() {
    let route = |mtu| {
        move |r: &mut Readings| {
            let peer = [10, 0, 0, 7].into();
            let interface = value("eth0".to_owned());
            r.route = Some(Route { peer, local: peer, interface, mtu: value(mtu) });
        }
    };
    let finding = look(&slow(), "MTU on the route to 10.0.0.7", route(1500));
    assert!(finding.why.contains("ip route get 10.0.0.7"), "{finding:?}");
    quiet(&slow(), route(9000));
    quiet(&slow(), |r| {
        route(65_535)(r);
        port(r).interface.basics.mtu = value(65_536);
    });
    let other = |r: &mut Readings| {
        route(9000)(r);
        r.route.as_mut().unwrap().interface = value("eth9".into());
    };
    look(&slow(), "interface on the route to 10.0.0.7", other);
}

#[test]
fn a_link_that_is_down_or_too_slow() {
    let down = |r: &mut Readings| port(r).interface.basics.state = value("down".into());
    assert_eq!(command(&harmful(&slow(), "eth0: state", down)), "ip link set dev eth0 up");
    let gigabit = |r: &mut Readings| port(r).interface.basics.speed_mbit = value(1000);
    assert_eq!(harmful(&tcp(), "eth0: speed", gigabit).command, None);
    quiet(&slow(), gigabit);
    // 125 MB/s of payload plus headers exceed 1 Gbit/s.
    let edge = Needs { rate: 124.9e6, peak: 124.9e6, ..tcp() };
    harmful(&edge, "eth0: speed", gigabit);
}

#[test]
fn a_card_in_a_narrow_slot() {
    harmful(&tcp(), "eth0: PCI Express link", |r| port(r).interface.link = link(2.5, 4, 8));
    look(&tcp(), "eth0: PCI Express link", |r| port(r).interface.link = link(5.0, 4, 8));
    // A card faster than required is fine.
    quiet(&tcp(), |r| port(r).interface.link = link(8.0, 8, 16));
    harmful(&tcp(), "nvme0n1: PCI Express link", |r| {
        let disk = r.settings.volumes[0].basics.disks.get_mut("nvme0n1").unwrap();
        disk.link = Some(link(5.0, 1, 4));
    });
}

#[test]
fn many_small_packets_want_jumbo_frames() {
    let standard = |r: &mut Readings| port(r).interface.basics.mtu = value(1500);
    let finding = harmful(&udp(), "eth0: MTU", |r| {
        standard(r);
        port(r).card.ring = value(8192);
    });
    assert_eq!(command(&finding), "ip link set dev eth0 mtu 9000");
    quiet(&slow(), standard);
    look(&Needs { peak: 2e9, ..tcp() }, "eth0: MTU", |r| {
        standard(r);
        port(r).card.ring = value(8192);
    });
    // Events that fit in a standard packet do not benefit from larger ones.
    let small = Needs { event_bytes: 500.0, ..udp() };
    let finding = found(&small, |_| {}).remove("eth0: MTU").unwrap();
    assert_eq!((finding.severity, finding.command), (DoctorSeverity::WorthALook, None));
}

#[test]
fn a_ring_lasts_until_the_core_comes() {
    let ring = |now, most| {
        move |r: &mut Readings| (port(r).card.ring, port(r).card.ring_max) = (value(now), value(most))
    };
    // 111 packets per millisecond.
    let finding = harmful(&udp(), "eth0: receive ring", ring(64, 8192));
    assert_eq!(command(&finding), "ethtool -G eth0 rx 2048");
    let finding = look(&udp(), "eth0: receive ring", ring(512, 1024));
    assert_eq!(command(&finding), "ethtool -G eth0 rx 1024");
    look(&tcp(), "eth0: receive ring", ring(64, 8192));
    quiet(&udp(), ring(512, 512));
    assert_eq!(look(&udp(), "eth0: receive ring", ring(64, 64)).command, None);
    quiet(&slow(), ring(64, 8192));
}

#[test]
fn connections_spread_over_queues_and_cores() {
    let many = Needs { connections: 8, ..tcp() };
    let finding = look(&many, "eth0: receive queues", |r| port(r).interface.receive_queues = value(2));
    assert_eq!(command(&finding), "ethtool -L eth0 combined 8");
    quiet(&tcp(), |r| port(r).interface.receive_queues = value(1));
    let sending =
        Interrupt { number: 60, name: "virtio0-output.0".into(), count: 1, cores: Some(cores("10")) };
    let one_core = |r: &mut Readings| {
        port(r).interface.interrupts.push(sending.clone());
        let receiving = port(r).interface.interrupts.iter_mut().take(8);
        receiving.for_each(|interrupt| interrupt.cores = Some(cores("9")));
    };
    let finding = look(&many, "eth0: cores that receive", one_core);
    assert!(
        command(&finding).starts_with("echo 8 > /proc/irq/40/smp_affinity_list; echo 9 > "),
        "{finding:?}"
    );
    quiet(&tcp(), one_core);
}

#[test]
fn interrupts_stay_on_the_cards_node() {
    let away = |r: &mut Readings| port(r).interface.interrupts[1].cores = Some(cores("0-15"));
    let finding = harmful(&udp(), "eth0: cores of its interrupts", away);
    assert_eq!(command(&finding), "for i in 41; do echo 8-15 > /proc/irq/$i/smp_affinity_list; done");
    look(&tcp(), "eth0: cores of its interrupts", away);
    quiet(&slow(), away);
    quiet(&udp(), |r| {
        away(r);
        r.settings.processors.nodes.remove(&1);
    });
}

#[test]
fn card_and_disks_in_different_nodes() {
    let finding = look(&tcp(), "eth0 and nvme0n1: NUMA nodes", |r| disk(r).node = value(0));
    assert!(finding.why.contains("distance 21"), "{finding:?}");
    assert_eq!(command(&finding), "keepup record --cpus 8-15 …");
    quiet(&slow(), |r| disk(r).node = value(0));
}

#[test]
fn offloads_and_flow_control() {
    let gro = |r: &mut Readings| port(r).card.gro = value(false);
    assert_eq!(command(&harmful(&tcp(), "eth0: generic-receive-offload", gro)), "ethtool -K eth0 gro on");
    look(&Needs { connections: 4, ..tcp() }, "eth0: generic-receive-offload", gro);
    quiet(&udp(), gro);
    let checksum = |r: &mut Readings| port(r).card.receive_checksum = value(false);
    look(&udp(), "eth0: rx-checksumming", checksum);
    quiet(&slow(), checksum);
    let pause = |r: &mut Readings| port(r).card.pause_send = value(false);
    assert_eq!(command(&look(&udp(), "eth0: flow control", pause)), "ethtool -A eth0 rx on tx on");
    quiet(&tcp(), pause);
}

#[test]
fn governors() {
    let set = |governor: &'static str, driver: &'static str| {
        move |r: &mut Readings| {
            r.settings.processors.governor = value(governor.into());
            r.settings.processors.frequency_driver = value(driver.into());
        }
    };
    harmful(&udp(), "scaling_governor", set("performance, powersave", "acpi-cpufreq"));
    let finding = look(&udp(), "scaling_governor", set("powersave", "intel_pstate"));
    assert_eq!(command(&finding), "cpupower frequency-set -g performance");
    look(&udp(), "scaling_governor", set("ondemand", "acpi-cpufreq"));
    quiet(&slow(), set("powersave", "acpi-cpufreq"));
}

#[test]
fn boost_sleep_and_isolated_cores() {
    let finding = look(&tcp(), "cpufreq boost", |r| r.settings.processors.may_boost = value(false));
    assert_eq!(command(&finding), "echo 1 > /sys/devices/system/cpu/cpufreq/boost");
    let asleep = |r: &mut Readings| r.settings.processors.idle_states[0].is_off = value(false);
    assert_eq!(command(&look(&udp(), "cpuidle states", asleep)), "cpupower idle-set -D 101");
    quiet(&tcp(), asleep);
    let finding = look(&slow(), "isolated cores", |r| r.settings.processors.isolated = value(cores("2-3")));
    assert_eq!(command(&finding), "keepup record --cpus 2-3 …");
}

#[test]
fn streams_too_fast_for_one_intake() {
    let fast = |connections| Needs { peak: 10e9, rate: 1e9, connections, ..tcp() };
    let node = |number: u64| (number, Node { cores: value(cores("0-7")), distances: value(vec![10, 21]) });
    let spare = |r: &mut Readings| {
        r.settings.processors.nodes = BTreeMap::from([node(0)]);
        r.settings.processors.online = value(cores("0-15"));
        port(r).interface.local_cores = value(cores("8-15"));
    };
    let finding = found(&fast(16), spare).remove("intake threads").unwrap();
    assert_eq!(command(&finding), "keepup record --intake-threads 4 --intake-cpus 8-11 …");
    assert!(!finding.why.contains("connection"), "{finding:?}");
    let two_nodes = |r: &mut Readings| {
        spare(r);
        r.settings.processors.nodes.extend([node(1)]);
    };
    let finding = found(&fast(16), two_nodes).remove("intake threads").unwrap();
    assert_eq!(command(&finding), "keepup record --intake-threads 4 …", "the recorder chooses the CPUs");
    assert!(finding.why.contains("on CPUs 8-15, near the card"), "{finding:?}");
    let finding = found(&fast(2), spare).remove("intake threads").unwrap();
    assert!(finding.why.ends_with("the detector has 2"), "{finding:?}");
    let udp = Needs { transport: Transport::Udp, ..fast(16) };
    assert!(!found(&udp, spare).contains_key("intake threads"));
    assert!(!found(&Needs { peak: 3e9, ..fast(16) }, spare).contains_key("intake threads"));
}

#[test]
fn memory_of_several_nodes() {
    let reclaim = |r: &mut Readings| r.settings.memory.zone_reclaim_mode = value(1);
    assert_eq!(
        command(&harmful(&slow(), "vm.zone_reclaim_mode", reclaim)),
        "sysctl -w vm.zone_reclaim_mode=0"
    );
    look(&udp(), "kernel.numa_balancing", |r| r.settings.memory.numa_balancing = value(1));
    quiet(&udp(), |r| {
        reclaim(r);
        r.settings.memory.numa_balancing = value(1);
        r.settings.processors.nodes.remove(&0);
    });
}

#[test]
fn huge_pages_and_locked_memory() {
    let never = |r: &mut Readings| r.settings.memory.transparent_huge_pages = value("never".into());
    assert!(command(&look(&udp(), "huge pages", never)).ends_with("vm.nr_hugepages=256"));
    quiet(&udp(), |r| {
        never(r);
        r.settings.memory.huge_pages_free = value(256);
    });
    quiet(&slow(), never);
    let small = |r: &mut Readings| {
        r.settings.process.locked_bytes =
            value(Limits { soft: Limit::At(8 << 20), hard: Limit::At(8 << 20) });
    };
    // Memory in huge pages is not registered.
    quiet(&udp(), small);
    let plain = |r: &mut Readings| {
        never(r);
        small(r);
    };
    let locked = |change: &dyn Fn(&mut Readings)| {
        let found = found(&udp(), |r| change(r)).into_values();
        found.filter(|finding| finding.setting == "locked memory").collect::<Vec<_>>()
    };
    assert_eq!(locked(&plain).iter().map(command).collect::<Vec<_>>(), ["ulimit -l 524288"]);
    let may_lock = |r: &mut Readings| {
        plain(r);
        r.settings.process.may_lock = value(true);
    };
    assert!(locked(&may_lock).is_empty());
}

#[test]
fn descriptors_and_rings() {
    let few = |r: &mut Readings| {
        r.settings.process.descriptors = value(Limits { soft: Limit::At(256), hard: Limit::At(300) });
    };
    let many = Needs { connections: 64, ..tcp() };
    assert_eq!(command(&harmful(&many, "open files", few)), "ulimit -Hn 320");
    quiet(&tcp(), few);
    let off = |mode| move |r: &mut Readings| r.settings.process.io_uring_disabled = value(mode);
    harmful(&udp(), "kernel.io_uring_disabled", off(2));
    look(&slow(), "kernel.io_uring_disabled", off(1));
    quiet(&udp(), |r| {
        off(1)(r);
        r.settings.process.is_admin = value(true);
    });
}

#[test]
fn unwritten_data_and_swap() {
    let wave = |r: &mut Readings| {
        r.settings.memory.dirty_background_bytes = value(0);
        r.settings.memory.dirty_background_ratio_percent = value(20);
    };
    look(&udp(), "vm.dirty_background_ratio", wave);
    quiet(&slow(), wave);
    let used = |r: &mut Readings| r.settings.memory.swap_used_bytes = value(1 << 20);
    assert_eq!(command(&look(&slow(), "vm.swappiness", used)), "sysctl -w vm.swappiness=10");
    quiet(&slow(), |r| {
        used(r);
        r.settings.memory.swappiness = value(1);
    });
}

#[test]
fn a_volume_holds_a_run() {
    let full = |r: &mut Readings| {
        let free =
            keepup_measure::environment::VolumeFree { bytes: 1 << 39, inodes: None, fill_percent: 99.0 };
        r.settings.volumes[0].basics.free = value(free);
    };
    let finding = harmful(&tcp(), "/no/such/volume: free space", full);
    assert!(finding.why.contains("550 s"), "{finding:?}");
    quiet(&Needs { run_bytes: None, ..tcp() }, full);
}

#[test]
fn file_systems() {
    let set = |name: &'static str| {
        move |r: &mut Readings| r.settings.volumes[0].basics.fs_type = value(name.into())
    };
    look(&slow(), "/no/such/volume: file system", set("nfs4"));
    look(&slow(), "/no/such/volume: file system", set("btrfs"));
    quiet(&slow(), set("ext4"));
    let memory = |r: &mut Readings| r.settings.volumes[0].basics.memory_backed = value(true);
    look(&slow(), "/no/such/volume: file system", memory);
}

#[test]
fn mount_options() {
    let set = |options: &'static str| {
        move |r: &mut Readings| r.settings.volumes[0].basics.mount_options = value(options.into())
    };
    let setting = "/no/such/volume: mount options";
    for option in ["ro", "rw,sync", "rw,data=journal", "rw,nobarrier", "rw,barrier=0"] {
        assert!(command(&harmful(&slow(), setting, set(option))).contains("/data"), "{option}");
    }
    look(&tcp(), setting, set("rw,strictatime"));
    let finding = look(&tcp(), setting, set("rw,noatime,discard"));
    assert!(command(&finding).starts_with("mount -o remount,nodiscard /data"), "{finding:?}");
    quiet(&slow(), set("rw,noatime,discard"));
    quiet(&tcp(), set("rw,noatime,nodiscard,data=ordered"));
}

#[test]
fn queues_of_disks() {
    let scheduler = |name: &'static str| {
        move |r: &mut Readings| {
            let disk = r.settings.volumes[0].basics.disks.get_mut("nvme0n1").unwrap();
            disk.scheduler = value(name.into());
        }
    };
    let finding = look(&tcp(), "nvme0n1: scheduler", scheduler("bfq"));
    assert_eq!(command(&finding), "echo none > /sys/block/nvme0n1/queue/scheduler");
    quiet(&slow(), scheduler("bfq"));
    quiet(&Needs { rate: 200e6, ..tcp() }, scheduler("mq-deadline"));
    let finding = look(&tcp(), "nvme0n1: max_sectors_kb", |r| disk(r).request_kib_max = value(128));
    assert_eq!(command(&finding), "echo 1024 > /sys/block/nvme0n1/queue/max_sectors_kb");
    quiet(&tcp(), |r| {
        (disk(r).request_kib_max, disk(r).hardware_kib_max) = (value(128), value(128));
    });
    let finding = look(&tcp(), "nvme0n1: nr_requests", |r| disk(r).requests = value(4));
    assert_eq!(command(&finding), "echo 8 > /sys/block/nvme0n1/queue/nr_requests");
}

#[test]
fn a_sata_disk_without_its_cache() {
    let through = |vendor: &'static str| {
        move |r: &mut Readings| {
            disk(r).vendor = value(vendor.into());
            let disk = r.settings.volumes[0].basics.disks.get_mut("nvme0n1").unwrap();
            disk.write_cache = value("write through".into());
        }
    };
    assert_eq!(command(&look(&tcp(), "nvme0n1: write cache", through("ATA"))), "hdparm -W1 /dev/nvme0n1");
    quiet(&tcp(), through("Other"));
}

#[test]
fn a_software_raid() {
    let raid = |action: &'static str, pages| {
        move |r: &mut Readings| {
            r.settings.volumes[0].md = Some(Md {
                name: "md0".into(),
                level: value("raid5".into()),
                stripe_cache_pages: value(pages),
                sync_action: value(action.into()),
            });
        }
    };
    assert_eq!(command(&look(&slow(), "md0: sync_action", raid("resync", 256))), "mdadm --wait /dev/md0");
    let finding = look(&tcp(), "md0: stripe_cache_size", raid("idle", 256));
    assert_eq!(command(&finding), "echo 4096 > /sys/block/md0/md/stripe_cache_size");
    quiet(&tcp(), raid("idle", 8192));
}

#[test]
fn a_worn_disk_is_worth_a_look() {
    let with = |wear: DiskWear| move |r: &mut Readings| drop(r.wear.insert("nvme0n1".into(), value(wear)));
    let used = |used_percent| with(DiskWear { used_percent, ..unworn() });
    let finding = look(&slow(), "nvme0n1: wear", used(103));
    assert!(finding.why.contains("103 % of its rated life used"), "{finding:?}");
    quiet(&udp(), used(99));
    let spare = look(&udp(), "nvme0n1: wear", with(DiskWear { spare_percent: 4, ..unworn() }));
    assert_eq!(spare.wanted.as_deref(), Some("below 100 %, spare at least 10 %"));
    let unknown = only(&tcp(), "nvme0n1: wear", |r| drop(r.wear.insert("nvme0n1".into(), none())));
    assert_eq!((unknown.severity, &unknown.why[..]), (DoctorSeverity::NotJudged, "not readable: made up"));
}

#[test]
fn a_detector_without_a_network_is_not_judged_by_it() {
    for transport in [Transport::File, Transport::SharedMemory] {
        let needs = Needs { transport, ..udp() };
        let mut readings = tuned();
        readings.settings.sockets = unreadable().settings.sockets;
        port(&mut readings).interface.basics.state = value("down".into());
        let findings = judge(&readings, &needs);
        assert!(findings.iter().all(|f| f.severity == DoctorSeverity::Fine), "{findings:#?}");
        assert!(findings.iter().all(|f| !f.setting.starts_with("net.") && !f.setting.starts_with("eth0")));
    }
}

#[test]
fn every_built_in_detector_can_be_judged() {
    for name in builtin_names() {
        let needs = Needs::of(&builtin(name).unwrap(), STALL);
        for readings in [tuned(), unreadable()] {
            for finding in judge(&readings, &needs) {
                let said = format!("{finding:?}");
                assert!(!said.contains("NaN") && !said.contains("inf "), "{name}: {said}");
            }
        }
        assert_eq!(needs.summary().profile.as_deref(), Some(name));
    }
}

#[test]
fn a_sender_is_judged_by_what_matters_to_it() {
    let mut readings = tuned();
    readings.settings.sockets.rmem_max = value(4096);
    readings.settings.processors.governor = value("powersave".to_owned());
    let settings = |findings: Vec<DoctorFinding>| -> Vec<String> {
        let bad = findings.into_iter().filter(|finding| finding.severity != DoctorSeverity::Fine);
        bad.map(|finding| finding.setting).collect()
    };
    assert!(settings(judge(&readings, &udp())).contains(&"net.core.rmem_max".to_owned()));
    assert_eq!(settings(judge_sender(&readings, &udp())), ["scaling_governor"]);
}
