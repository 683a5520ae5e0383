//! Clocks, histograms, samplers of CPU, disks and network, the environment record, statistics.
