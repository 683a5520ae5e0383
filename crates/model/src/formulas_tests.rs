//! Formulas compared with published figures, each with its source.
use super::bus::*;
use super::link::*;
use super::register::*;
use super::store::*;

/// Checks the relative deviation from a published value.
fn near(ours: f64, published: f64, share: f64) {
    assert!((ours / published - 1.0).abs() <= share, "{ours} is not within {share} of {published}");
}

#[test]
fn parallel_buses_at_their_peak_and_with_bursts() {
    // Bits, MHz, MB/s as the specifications round them.
    for (bits, mhz, peak) in [
        (32.0, 33.333, 133.0),
        (64.0, 33.333, 267.0),
        (64.0, 66.667, 533.0),
        (64.0, 100.0, 800.0),
        (64.0, 133.333, 1067.0),
        (64.0, 266.667, 2133.0),
        (64.0, 533.333, 4267.0),
    ] {
        near(parallel_peak(bits / 8.0, mhz * 1e6) / 1e6, peak, 0.005);
    }
    let pci = |burst, clocks| parallel_peak(4.0, 33.333e6) / parallel_cost(4.0, burst, clocks) / 1e6;
    for (clocks, rates) in [(8.0, [89.0, 119.0, 129.0]), (24.0, [53.0, 97.0, 122.0])] {
        for (burst, rate) in [64.0, 256.0, 1024.0].into_iter().zip(rates) {
            near(pci(burst, clocks), rate, 0.01);
        }
    }
}

#[test]
fn pci_express_without_packets() {
    for (gt, coding, gb) in [
        (2.5, 0.8, 0.25),
        (5.0, 0.8, 0.5),
        (8.0, 128.0 / 130.0, 0.985),
        (16.0, 128.0 / 130.0, 1.969),
        (32.0, 128.0 / 130.0, 3.938),
        (64.0, 236.0 / 256.0, 7.375),
    ] {
        near(pcie_line(1.0, gt * 1e9, coding) / 1e9, gb, 0.001);
    }
    for (payload, share) in [(128.0, 0.842), (256.0, 0.914), (512.0, 0.955)] {
        near(1.0 / packet_cost(payload, 24.0), share, 0.001);
    }
}

/// Part of a PCI Express link that data link packets (8 bytes each) and clock correction (4 symbols in 1538)
/// take, where one acknowledgement and one return of credits go out in `interval_bytes`. The public
/// pcie-model (Neugebauer et al., SIGCOMM 2018) takes the specification's interval in symbol times for bytes.
fn dllp_share(interval_bytes: f64) -> f64 {
    2.0 * 8.0 / interval_bytes + 4.0 / 1538.0
}

#[test]
fn pci_express_as_the_public_model_counts_it() {
    // Lanes, GT/s, symbols between acknowledgements for 256 B (PCI Express Base Specification 3.0), and what
    // pcie-model says of 4 KiB: GB/s written and read.
    for (lanes, gt, interval, write, read) in [
        (1.0, 2.5, 416.0, 0.22, 0.22),
        (4.0, 2.5, 118.0, 0.79, 0.80),
        (8.0, 2.5, 107.0, 1.55, 1.57),
        (16.0, 2.5, 72.0, 2.83, 2.88),
        (4.0, 5.0, 169.0, 1.65, 1.67),
        (8.0, 5.0, 158.0, 3.28, 3.32),
        (4.0, 8.0, 214.0, 3.32, 3.37),
        (8.0, 8.0, 203.0, 6.62, 6.71),
        (16.0, 8.0, 168.0, 13.0, 13.2),
        (4.0, 16.0, 214.0, 6.64, 6.74),
        (16.0, 16.0, 168.0, 26.0, 26.4),
        (16.0, 32.0, 168.0, 52.0, 52.7),
    ] {
        let coding = if gt < 8.0 { 0.8 } else { 128.0 / 130.0 };
        let line = pcie_line(lanes, gt * 1e9, coding) * (1.0 - dllp_share(interval)) / 1e9;
        // Its figures have two digits where they are small.
        let share = if lanes == 1.0 { 0.025 } else { 0.02 };
        near(line / packet_cost(256.0, 24.0), write, share);
        near(line / packet_cost(256.0, 20.0), read, share);
    }
}

#[test]
fn the_lanes_that_ten_gigabit_ethernet_needs() {
    let payload = 1.25e9 / ethernet_cost(8192.0, 52.0, 38.0);
    assert_eq!(pcie_lanes_for(payload, 0.25e9), Some(8));
    assert_eq!(pcie_lanes_for(payload, 0.5e9), Some(4));
    assert_eq!(pcie_lanes_for(16.1, 1.0), None);
}

#[test]
fn ethernet_shares_and_rates() {
    for (mtu, headers, share) in [
        (1500.0, 52.0, 0.9415),
        (8192.0, 52.0, 0.9891),
        (9000.0, 52.0, 0.9900),
        (1500.0, 28.0, 1472.0 / 1538.0),
    ] {
        near(1.0 / ethernet_cost(mtu, headers, 38.0), share, 0.0001);
    }
    for (gbit, mtu, rate) in [
        (1.0, 1500.0, 117.7),
        (1.0, 8192.0, 123.6),
        (10.0, 9000.0, 1238.0),
        (25.0, 1500.0, 2942.0),
        (40.0, 1500.0, 4707.0),
        (100.0, 9000.0, 12376.0),
        (200.0, 9000.0, 24751.0),
        (400.0, 1500.0, 47074.0),
    ] {
        near(gbit * 125.0 / ethernet_cost(mtu, 52.0, 38.0), rate, 0.001);
    }
}

#[test]
fn fibre_channel_links_and_loops() {
    let coding = 64.0 / 66.0;
    let corrected = 256.0 / 257.0 * 514.0 / 544.0;
    for (gbaud, coding, rate) in [
        (1.0625, 0.8, 103.3),
        (2.125, 0.8, 206.6),
        (4.25, 0.8, 413.0),
        (8.5, 0.8, 826.0),
        (14.025, coding, 1653.0),
        (28.05, coding, 3306.0),
        (57.8, corrected, 6612.0),
    ] {
        near(serial_line(gbaud * 1e9, coding) / frame_cost(2112.0, 60.0) / 1e6, rate, 0.001);
    }
    near(106.25 / frame_cost(1024.0, 60.0), 100.4, 0.001);
    for (nodes, us, lost) in [(9.0, 2.03, 0.005), (36.0, 8.13, 0.019), (127.0, 28.7, 0.064)] {
        let turn = loop_turn(nodes, 6.0, 1.0625e9, 0.0);
        near(turn * 1e6, us, 0.002);
        let share = tenancy_share(131_072.0, 103.3e6, 3.0, turn);
        assert!((1.0 - share - lost).abs() < 0.0006, "{nodes} nodes lose {}", 1.0 - share);
    }
    near(loop_turn(0.0, 6.0, 1.0625e9, 1000.0), 5e-6, 1e-12);
}

#[test]
fn disks_by_their_tracks_and_at_random() {
    let rate = |sectors, skew| track_rate(sectors, 10045.0 / 60.0, skew) / 1e6;
    near(rate(254.0, 0.0), 21.8, 0.005);
    near(rate(167.0, 0.0), 14.3, 0.005);
    near(rate(254.0, 97.0 / 254.0), 15.8, 0.005);
    near(rate(167.0, 97.0 / 254.0), 10.4, 0.005);
    near(random_rate(24.0 * 1024.0, 5.5e-3, 75e6) / 1e6, 4.2, 0.01);
}

#[test]
fn layouts_cost_what_mirrors_and_parity_add() {
    use Direction::{Read, Write};
    // Disks, then what eight of them do for a byte: streams read and written, random writes.
    for (layout, read, write, random) in [
        (Layout::Each, 1.0, 1.0, 1.0),
        (Layout::Raid0, 1.0, 1.0, 1.0),
        (Layout::Raid1, 1.0, 8.0, 8.0),
        (Layout::Raid10, 1.0, 2.0, 2.0),
        (Layout::Raid5, 8.0 / 7.0, 8.0 / 7.0, 4.0),
        (Layout::Raid6, 8.0 / 6.0, 8.0 / 6.0, 6.0),
    ] {
        assert_eq!(layout.stream_cost(Read, 8), read);
        assert_eq!(layout.stream_cost(Write, 8), write);
        assert_eq!(layout.random_cost(Write, 8), random);
        assert_eq!(layout.random_cost(Read, 8), 1.0);
    }
    assert!(!Layout::Raid10.takes(3) && Layout::Raid10.takes(4) && !Layout::Raid6.takes(3));
    // CDF: mirrored disks have 57 % of the capacity of RAID 5.
    let capacity = |layout: Layout| 1.0 / layout.stream_cost(Direction::Write, 8);
    near(capacity(Layout::Raid10) / capacity(Layout::Raid5), 0.57, 0.003);
}

#[test]
fn registers_and_what_is_done_one_after_another() {
    near(break_even_words(2e-3, 2.42e-6, 0.35e-6), 966.0, 0.001);
    near(break_even_words(2e-3, 1.0e-6, 0.35e-6), 3077.0, 0.001);
    assert_eq!(break_even_words(2e-3, 0.35e-6, 0.35e-6), f64::INFINITY);
    near(one_after_another(40.0, 60.0), 24.0, 1e-12);
    near(second_of_two(40.0, 30.0), 120.0, 1e-12);
    near(cycles_per_byte(166e6, 80e6), 2.075, 1e-12);
    assert_eq!(transfers(2e6, 256.0, 4096.0), 2.0);
    assert_eq!(needed(80.0, 30.0), 3.0);
    near(handshake_rate(4.0, 100e-9, 470e-9) / 1e6, 8.5, 0.01);
    near(loss_beside(136.0, 92.5, 25.0), 0.504, 0.001);
}
