//! Rules for volumes: free space, file system, mount options, request queues, disks and their wear, and
//! software RAID.
use keepup_measure::environment::{Disk, Reading};
use keepup_measure::settings::{Queue, Volume};
use keepup_plan::units::Bytes;
use keepup_results::shell::quoted;
use keepup_results::{DiskWear, DoctorFinding};

use super::card::narrow;
use super::{Case, FAST, FindingExt, SLOW, Subject, either, read};

/// Network and user-space file systems.
const REMOTE: [&str; 8] = ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs"];
const NFS: &str = "nfs(5); MIDAS, whose buffer had to hide stalls of 3 to 5 s on NFS";
const GB: u64 = 1_000_000_000;
/// Requests of the recorder in flight per volume.
const DEPTH: u64 = 8;
/// Recommended stripe cache of raid5 and raid6, in pages per device; md's default is 256.
const STRIPE_PAGES: u64 = 4096;

/// Bytes per second per volume.
fn rate_of_volume(case: &Case<'_>) -> f64 {
    case.needs.rate / case.settings().volumes.len().max(1) as f64
}

/// Each disk of each volume once, with its queue.
fn disks<'a>(case: &Case<'a>) -> Vec<(&'a str, &'a Disk, &'a Queue)> {
    let all = case.settings().volumes.iter().flat_map(|volume| {
        volume
            .queues
            .iter()
            .filter_map(|(name, queue)| Some((&**name, volume.basics.disks.get(name)?, queue)))
    });
    let mut disks: Vec<_> = all.collect();
    disks.sort_by_key(|(name, _, _)| *name);
    disks.dedup_by_key(|(name, _, _)| *name);
    disks
}

fn each(case: &Case<'_>, judge: impl Fn(&Volume) -> Option<DoctorFinding>) -> Vec<DoctorFinding> {
    case.settings().volumes.iter().filter_map(judge).collect()
}

/// The free space must hold a run.
pub(super) fn space(case: &Case<'_>) -> Vec<DoctorFinding> {
    let Some(run) = case.needs.run_bytes else { return Vec::new() };
    let share = run / case.settings().volumes.len().max(1) as u64;
    each(case, |volume| {
        let subject =
            Subject::new(format!("{}: free space", volume.basics.path), "the profile: rate and duration");
        let judged = |subject: Subject| {
            let free = read(&volume.basics.free, &subject)?.bytes;
            if free >= share {
                return Ok(subject.fine(Bytes(free), format!("a run needs {}", Bytes(share))));
            }
            let seconds = free as f64 / rate_of_volume(case);
            Ok(subject
                .harmful(Bytes(free), Bytes(share))
                .because(format!("a run does not fit: the volume is full after {seconds:.0} s"))
                .command(format!(
                    "keepup record --keep '{} GB' …   # keep only the latest data",
                    free / 10 * 9 / GB
                )))
        };
        Some(either(judged(subject)))
    })
}

/// The file system must be a local disk.
pub(super) fn file_system(case: &Case<'_>) -> Vec<DoctorFinding> {
    each(case, |volume| {
        let subject = |source| Subject::new(format!("{}: file system", volume.basics.path), source);
        let found = match read(&volume.basics.fs_type, &subject("mount(8)")) {
            Ok(found) => found,
            Err(finding) => return Some(*finding),
        };
        if volume.basics.memory_backed.value() == Some(&true) {
            return Some(
                subject("tmpfs(5)")
                    .look(found, "a disk")
                    .because("recordings are in memory and lost at shutdown"),
            );
        }
        if REMOTE.contains(&found.as_str()) {
            return Some(
                subject(NFS)
                    .look(found, "a disk of this machine")
                    .because("write latency depends on another machine and the network, and may be seconds"),
            );
        }
        if found == "btrfs" {
            return Some(subject("portworx/px-fuse #119").look(found, "xfs or ext4").because(
                "direct writes block during submission, so few are in flight, and each is allocated at a new \
                 location",
            ));
        }
        Some(subject("mount(8)").fine(found, "on a disk of this machine"))
    })
}

/// Mount options that slow down writes or disable flushes.
pub(super) fn mount_options(case: &Case<'_>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for volume in &case.settings().volumes {
        let subject = |source| Subject::new(format!("{}: mount options", volume.basics.path), source);
        let options = match read(&volume.basics.mount_options, &subject("mount(8)")) {
            Ok(options) => options,
            Err(finding) => {
                findings.push(*finding);
                continue;
            }
        };
        let point = volume.basics.mount_point.value().map_or(volume.basics.path.as_str(), String::as_str);
        let before = findings.len();
        for option in options.split(',') {
            findings.extend(judge_option(case, option, point, &subject));
        }
        if findings.len() == before {
            findings.push(subject("mount(8)").fine(options, "no option slows down recording"));
        }
    }
    findings
}

const EXT4: &str = "Documentation/admin-guide/ext4.rst";

fn judge_option(
    case: &Case<'_>,
    option: &str,
    point: &str,
    subject: &impl Fn(&'static str) -> Subject,
) -> Option<DoctorFinding> {
    let point = quoted(point);
    let remount = |wanted: &str| format!("mount -o remount,{wanted} {point}");
    Some(match option {
        "ro" => {
            subject("mount(8)").harmful("ro", "rw").because("nothing can be written").command(remount("rw"))
        }
        "sync" => subject("mount(8)")
            .harmful("sync", "async")
            .because("every write waits for the disk, including journal writes")
            .command(remount("async")),
        "data=journal" => subject(EXT4)
            .harmful(option, "data=ordered")
            .because("all data is written twice, without direct I/O")
            .command(format!("umount {point} && mount -o data=ordered {point}")),
        "nobarrier" | "barrier=0" => subject(EXT4)
            .harmful(option, "barrier")
            .because("flushes do not write out the disk's cache: durable data is lost at a power failure")
            .command(remount("barrier=1")),
        "strictatime" => subject("mount(8)")
            .look(option, "relatime")
            .because("every read, including a drain's, writes an access time")
            .command(remount("relatime")),
        "discard" if rate_of_volume(case) >= SLOW => subject(
            "fstrim(8); mount options of ext4(5) and xfs(5)",
        )
        .look(option, "nodiscard, and periodic fstrim")
        .because(
            "segments removed during recording (--keep) are discarded immediately, and some disks stall \
                     meanwhile",
        )
        .command(format!("{} && systemctl enable --now fstrim.timer", remount("nodiscard"))),
        _ => return None,
    })
}

/// I/O scheduler.
pub(super) fn scheduler(case: &Case<'_>) -> Vec<DoctorFinding> {
    let judged = |(name, disk, _): (&str, &Disk, &Queue)| {
        let subject = Subject::new(
            format!("{name}: scheduler"),
            "Documentation/block/bfq-iosched.rst and switching-sched.rst",
        );
        let judged = |subject: Subject| {
            let found = read(&disk.scheduler, &subject)?;
            let is_spinning = disk.rotational.value() == Some(&true);
            let wanted = if is_spinning { "mq-deadline" } else { "none" };
            let bad = match found.as_str() {
                "bfq" => rate_of_volume(case) >= SLOW,
                "kyber" => is_spinning,
                "mq-deadline" => !is_spinning && rate_of_volume(case) >= 2.0 * FAST,
                _ => false,
            };
            if !bad {
                return Ok(subject.fine(found, "large sequential writes are passed through"));
            }
            Ok(subject
                .look(found, wanted)
                .because(
                    "the scheduler spends CPU on reordering requests that are already large and sequential",
                )
                .command(format!("echo {wanted} > /sys/block/{name}/queue/scheduler")))
        };
        either(judged(subject))
    };
    disks(case).into_iter().map(judged).collect()
}

/// Request size and queue length.
pub(super) fn requests(case: &Case<'_>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    if rate_of_volume(case) < SLOW {
        return findings;
    }
    for (name, _, queue) in disks(case) {
        let block_kib = case.needs.block_bytes.div_ceil(1024);
        let (found, hardware) = (queue.request_kib_max.value(), queue.hardware_kib_max.value());
        if let (Some(&found), Some(&hardware)) = (found, hardware) {
            let subject = Subject::new(
                format!("{name}: max_sectors_kb"),
                "Documentation/ABI/stable/sysfs-block, max_sectors_kb",
            );
            let wanted = block_kib.min(hardware);
            let value = format!("{found} KiB");
            findings.push(match found < wanted && found < 512 {
                false => subject.fine(value, format!("the hardware limit is {hardware} KiB")),
                true => subject
                    .look(value, format!("{wanted} KiB"))
                    .because(format!(
                        "a block of {block_kib} KiB is split into {} requests",
                        block_kib.div_ceil(found)
                    ))
                    .command(format!("echo {wanted} > /sys/block/{name}/queue/max_sectors_kb")),
            });
        }
        if let Some(&found) = queue.requests.value() {
            let pieces =
                block_kib.div_ceil(queue.request_kib_max.value().map_or(block_kib, |kib| (*kib).max(1)));
            let wanted = DEPTH * pieces;
            let subject = Subject::new(
                format!("{name}: nr_requests"),
                "Documentation/ABI/stable/sysfs-block, nr_requests",
            );
            findings.push(match found < wanted {
                false => subject.fine(found, "all in-flight blocks fit"),
                true => subject
                    .look(found, wanted)
                    .because(format!(
                        "{DEPTH} in-flight blocks need {wanted} requests; the rest waits outside the queue"
                    ))
                    .command(format!("echo {wanted} > /sys/block/{name}/queue/nr_requests")),
            });
        }
    }
    findings
}

/// Disabled write cache, or a slow slot.
pub(super) fn disk_cache_and_slot(case: &Case<'_>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for (name, disk, queue) in disks(case) {
        let is_sata = queue.vendor.value().is_some_and(|vendor| vendor == "ATA");
        let cache = disk.write_cache.value().filter(|_| is_sata);
        findings.extend(cache.map(|found| {
            let subject = Subject::new(format!("{name}: write cache"), "hdparm(8), -W");
            match found.as_str() {
                "write through" if rate_of_volume(case) >= SLOW / 4.0 => subject
                    .look(found, "write back")
                    .because(
                        "a SATA disk without write cache completes one request at a time; flushes keep \
                         durable data safe with the cache on",
                    )
                    .command(format!("hdparm -W1 /dev/{name}")),
                _ => subject.fine(found, "flushes write it out"),
            }
        }));
        // The link of a controller carries at least the rate of one volume.
        let link = disk.link.as_ref();
        findings.extend(link.and_then(|link| narrow(name, link, rate_of_volume(case))));
    }
    findings
}

/// Parity RAID needs a large stripe cache, and is slow while it rebuilds.
pub(super) fn raid(case: &Case<'_>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for md in case.settings().volumes.iter().filter_map(|volume| volume.md.as_ref()) {
        let name = &md.name;
        if let Some(action) = md.sync_action.value() {
            let subject =
                Subject::new(format!("{name}: sync_action"), "Documentation/admin-guide/md.rst, sync_action");
            findings.push(match action.as_str() {
                "idle" | "frozen" => subject.fine(action, "no background activity"),
                _ => subject
                    .look(action, "idle")
                    .because("the background operation competes with the recording for all its disks")
                    .command(match action.as_str() {
                        "check" | "repair" => format!("echo idle > /sys/block/{name}/md/sync_action"),
                        _ => format!("mdadm --wait /dev/{name}"),
                    }),
            });
        }
        if let Some(&pages) = md.stripe_cache_pages.value().filter(|_| rate_of_volume(case) >= SLOW) {
            let subject = Subject::new(
                format!("{name}: stripe_cache_size"),
                "Documentation/admin-guide/md.rst, stripe_cache_size",
            );
            findings.push(match pages < STRIPE_PAGES {
                false => subject.fine(pages, "enough for whole stripes"),
                true => subject
                    .look(pages, STRIPE_PAGES)
                    .because("evicted partial stripes must be read again to compute their parity")
                    .command(format!("echo {STRIPE_PAGES} > /sys/block/{name}/md/stripe_cache_size")),
            });
        }
    }
    findings
}

/// A worn disk may fail or slow down during a run.
pub(super) fn wear(case: &Case<'_>) -> Vec<DoctorFinding> {
    let judged = |(disk, reading): (&String, &Reading<DiskWear>)| {
        let subject =
            Subject::new(format!("{disk}: wear"), "NVM Express Base Specification 2.0c, SMART log page");
        let judged = |subject: Subject| {
            let wear = read(reading, &subject)?;
            let found = format!("{} % of its rated life, spare {} %", wear.used_percent, wear.spare_percent);
            let Some(fault) = wear.fault() else {
                let written = wear.written_bytes.map(|written| format!("{} were written", Bytes(written)));
                return Ok(subject.fine(found, written.unwrap_or_else(|| "it reports no fault".into())));
            };
            let wanted = format!("below 100 %, spare at least {} %", wear.spare_threshold_percent);
            Ok(subject.look(found, wanted).because(format!("{fault}; it may fail during a run")))
        };
        either(judged(subject))
    };
    case.readings.wear.iter().map(judged).collect()
}
