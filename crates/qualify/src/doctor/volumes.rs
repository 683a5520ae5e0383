//! Volumes: room, file system, mount options, request queues, disks and software RAID.
use keepup_measure::environment::Disk;
use keepup_measure::settings::{Queue, Volume};
use keepup_plan::units::Bytes;
use keepup_results::DoctorFinding;

use super::card::narrow;
use super::{Case, FAST, SLOW, Subject, Told, either, read};

/// File systems of other machines, and those that a program serves.
const REMOTE: [&str; 8] = ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs"];
const NFS: &str = "nfs(5); MIDAS, whose buffer had to hide stalls of 3 to 5 s on NFS";
const GB: u64 = 1_000_000_000;
/// Requests that the recorder has under way on a volume.
const DEPTH: u64 = 8;
/// Stripes that raid5 and raid6 hold, in pages for each device; md's own default is 256.
const STRIPE_PAGES: u64 = 4096;

/// Bytes per second that go to each volume.
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

/// A run must fit.
pub(super) fn space(case: &Case<'_>) -> Vec<DoctorFinding> {
    let Some(run) = case.needs.run_bytes else { return Vec::new() };
    let share = run / case.settings().volumes.len().max(1) as u64;
    each(case, |volume| {
        let subject =
            Subject::new(format!("{}: free space", volume.basics.path), "the profile: rate and duration");
        let judged = |subject: Subject| {
            let free = read(&volume.basics.free, &subject)?.bytes;
            if free >= share {
                return Ok(subject.fine(Bytes(free), format!("a run takes {} of it", Bytes(share))));
            }
            let seconds = free as f64 / rate_of_volume(case);
            Ok(subject
                .harmful(Bytes(free), Bytes(share))
                .because(format!("a whole run does not fit: it is full after {seconds:.0} s"))
                .command(format!(
                    "keepup record --keep '{} GB' …   # the last of it only",
                    free / 10 * 9 / GB
                )))
        };
        Some(either(judged(subject)))
    })
}

/// Where data goes at all.
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
                    .because("what is recorded is in memory, and gone when the machine stops"),
            );
        }
        if REMOTE.contains(&found.as_str()) {
            return Some(subject(NFS).look(found, "a disk of this machine").because(
                "another machine and the network decide how long a write takes, which may be seconds",
            ));
        }
        if found == "btrfs" {
            return Some(subject("portworx/px-fuse #119").look(found, "xfs or ext4").because(
                "direct writes block while they are handed in, so that few are under way, and each goes \
                 to a new place",
            ));
        }
        Some(subject("mount(8)").fine(found, "on a disk of this machine"))
    })
}

/// Options that slow writes down, or make a flush mean nothing.
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
            findings.push(subject("mount(8)").fine(options, "none of them slows recording down"));
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
    let remount = |wanted: &str| format!("mount -o remount,{wanted} {point}");
    Some(match option {
        "ro" => {
            subject("mount(8)").harmful("ro", "rw").because("nothing can be written").command(remount("rw"))
        }
        "sync" => subject("mount(8)")
            .harmful("sync", "async")
            .because("every write waits for the disk, the journal's too")
            .command(remount("async")),
        "data=journal" => subject(EXT4)
            .harmful(option, "data=ordered")
            .because("all data is written twice, and direct I/O is switched off")
            .command(format!("umount {point} && mount -o data=ordered {point}")),
        "nobarrier" | "barrier=0" => subject(EXT4)
            .harmful(option, "barrier")
            .because("a flush does not reach the disk's cache: what was told durable is lost with the power")
            .command(remount("barrier=1")),
        "strictatime" => subject("mount(8)")
            .look(option, "relatime")
            .because("every reading, a drain's too, writes the time of it")
            .command(remount("relatime")),
        "discard" if rate_of_volume(case) >= SLOW => subject(
            "fstrim(8); mount options of ext4(5) and xfs(5)",
        )
        .look(option, "nodiscard, and fstrim now and then")
        .because(
            "segments that are removed while others are written (--keep) are told to the disk at once, and \
                 some disks stand still for it",
        )
        .command(format!("{} && systemctl enable --now fstrim.timer", remount("nodiscard"))),
        _ => return None,
    })
}

/// Who decides which request goes first.
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
                return Ok(subject.fine(found, "large writes in order go through as they come"));
            }
            Ok(subject
                .look(found, wanted)
                .because("it weighs and reorders requests that are large and in order already, at a cost")
                .command(format!("echo {wanted} > /sys/block/{name}/queue/scheduler")))
        };
        either(judged(subject))
    };
    disks(case).into_iter().map(judged).collect()
}

/// How large requests are, and how many fit.
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
                false => subject.fine(value, format!("the hardware takes {hardware} KiB")),
                true => subject
                    .look(value, format!("{wanted} KiB"))
                    .because(format!(
                        "a block of {block_kib} KiB goes out in {} pieces",
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
                false => subject.fine(found, "all blocks under way fit"),
                true => subject
                    .look(found, wanted)
                    .because(format!(
                        "{DEPTH} blocks under way are {wanted} requests; the rest waits outside"
                    ))
                    .command(format!("echo {wanted} > /sys/block/{name}/queue/nr_requests")),
            });
        }
    }
    findings
}

/// A disk whose cache is off, or that sits in a slow slot.
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
                        "without its cache a SATA disk writes piece by piece; flushes keep what is durable \
                         safe with it too",
                    )
                    .command(format!("hdparm -W1 /dev/{name}")),
                _ => subject.fine(found, "flushes empty it where there is one"),
            }
        }));
        // SATA disks share the slot of their controller, of which the rate of one says nothing.
        let is_nvme = name.starts_with("nvme");
        findings.extend(narrow(name, &queue.link, rate_of_volume(case)).filter(|_| is_nvme));
    }
    findings
}

/// Software RAID with parity needs room for stripes, and is slow while it rebuilds.
pub(super) fn raid(case: &Case<'_>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for md in case.settings().volumes.iter().filter_map(|volume| volume.md.as_ref()) {
        let name = &md.name;
        if let Some(action) = md.sync_action.value() {
            let subject =
                Subject::new(format!("{name}: sync_action"), "Documentation/admin-guide/md.rst, sync_action");
            findings.push(match action.as_str() {
                "idle" | "frozen" => subject.fine(action, "the RAID does nothing by itself"),
                _ => subject
                    .look(action, "idle")
                    .because(
                        "it reads and writes all of its disks by itself, and takes that from the recording",
                    )
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
                false => subject.fine(pages, "there is room for whole stripes"),
                true => subject
                    .look(pages, STRIPE_PAGES)
                    .because(
                        "stripes that are pushed out before they are full are read again for their parity",
                    )
                    .command(format!("echo {STRIPE_PAGES} > /sys/block/{name}/md/stripe_cache_size")),
            });
        }
    }
    findings
}
