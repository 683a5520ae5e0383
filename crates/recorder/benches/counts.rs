//! Runs one stage of the data path a given number of times, for counting instructions: `counts
//! STAGE TIMES`. `cargo xtask instructions` runs it under callgrind at two lengths.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark")]
mod work;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo bench` and `cargo test` pass no stage.
    let [_, stage, times] = &arguments[..] else { return };
    let Ok(times) = times.parse::<u32>() else { return };
    let repeat = |mut run: Box<dyn FnMut()>| (0..times).for_each(|_| run());
    match stage.as_str() {
        "decode" => {
            let mut decode = work::Decode::new(508);
            repeat(Box::new(move || decode.run()));
        }
        "seal-1KiB" => {
            let mut seal = work::Seal::new(1024, 1024);
            repeat(Box::new(move || seal.run()));
        }
        "seal-256KiB" => {
            let mut seal = work::Seal::new(4, 256 << 10);
            repeat(Box::new(move || seal.run()));
        }
        "checksum-64KiB" => {
            let data = vec![0x5a; 64 << 10];
            repeat(Box::new(move || {
                std::hint::black_box(work::checksum(&data, 64 << 10));
            }));
        }
        other => panic!("no stage {other}"),
    }
}
