//! Valid and invalid parts, and their capabilities.
use super::*;
use crate::catalogue::part;
use crate::system::Currency;
use crate::unit::Quantity;

fn given(text: &str) -> Ranged {
    Ranged::given(text.parse::<Quantity>().unwrap())
}

fn own(formula: Formula, figures: &[(&str, &str)]) -> Part {
    let figures = figures.iter().map(|(name, text)| ((*name).to_owned(), given(text))).collect();
    Part { name: "x".to_owned(), title: String::new(), family: String::new(), formula, figures }
}

fn can(part: &Part) -> Capability {
    part.check().unwrap_or_else(|fault| panic!("{fault:?}"));
    part.capability(&mut |figure| figure.value).unwrap()
}

#[test]
fn what_a_part_lacks_or_has_too_much_is_named() {
    for (formula, figures, why) in [
        (Formula::Rate, vec![("rate", "5 us")], "rate of part x requires B/s, got us"),
        (Formula::Rate, vec![("rate", "5")], "rate of part x requires B/s, got a plain number"),
        (Formula::Rate, vec![], "part x lacks the figure rate, in B/s"),
        (Formula::Rate, vec![("rate", "0 B/s")], "rate of part x must be above 0"),
        (
            Formula::Rate,
            vec![("rate", "1 B/s"), ("rates", "1 B/s")],
            "x has no figure \"rates\"\nhint: use one of rate",
        ),
        (Formula::Thread, vec![("clock", "1 Hz")], "x has no figure \"clock\""),
        (
            Formula::Ethernet,
            vec![("line", "1 Gbit/s"), ("mtu", "40 B"), ("headers", "52 B"), ("frame", "38 B")],
            "overhead leaves no space for payload",
        ),
        (
            Formula::FibreChannel,
            vec![
                ("baud", "1 GBd"),
                ("coding", "80 %"),
                ("frame", "2112 B"),
                ("overhead", "60 B"),
                ("nodes", "9"),
            ],
            "lacks the figure words_each, in words, required by nodes",
        ),
        (Formula::Rate, vec![("rate", "1 B/s"), ("efficiency", "0 %")], "they leave it no capacity"),
        (Formula::Rate, vec![("rate", "1 B/s"), ("efficiency", "101 %")], "must be at most 100 %"),
    ] {
        let fault = own(formula, &figures).check().unwrap_err();
        assert!(fault.reason.to_text().contains(why), "{:?}", fault.reason);
    }
}

#[test]
fn formulas_come_to_capabilities() {
    let thread = can(&own(Formula::Thread, &[]));
    assert_eq!((thread.currency, thread.capacity), (Currency::Seconds, 1.0));
    let core = can(&own(Formula::Processor, &[("clock", "3 GHz")]));
    assert_eq!((core.currency, core.capacity, core.per_byte_read), (Currency::Cycles, 3e9, 0.0));
    let requests = can(&own(Formula::Operations, &[("rate", "100 kHz")]));
    assert_eq!(
        (requests.currency, requests.capacity, requests.per_operation),
        (Currency::Operations, 1e5, 1.0)
    );
    let flash = can(&own(Formula::Flash, &[("read", "6 GB/s"), ("write", "3 GB/s"), ("access", "80 us")]));
    assert_eq!((flash.capacity, flash.per_byte_read, flash.per_byte_write), (6e9, 1.0, 2.0));
    let words = can(&own(Formula::Register, &[("set_up", "1 s"), ("word_time", "2 s"), ("word", "4 B")]));
    assert_eq!((words.per_operation, words.per_byte_read), (1.0, 0.5));
    let memory = [("transfers", "3.2 GT/s"), ("width", "64 bit"), ("channels", "2"), ("efficiency", "50 %")];
    assert!((can(&own(Formula::Memory, &memory)).capacity / 25.6e9 - 1.0).abs() < 1e-12);
}

#[test]
fn a_read_of_memory_costs_a_shared_bus_more_than_a_posted_write() {
    let bus = can(&part("pci-32-33").unwrap());
    assert!(bus.per_byte_write > bus.per_byte_read && bus.per_byte_read > 1.0);
    // For PCI Express it is reversed: a completion's header is shorter.
    let link = can(&part("pcie3x8").unwrap());
    assert!(link.per_byte_write < link.per_byte_read && link.per_byte_write > 1.0);
}

#[test]
fn a_figure_is_drawn_once_and_only_from_its_range() {
    let part = part("fc-1g-loop").unwrap();
    let mut seen = Vec::new();
    part.capability(&mut |figure| {
        seen.push(figure.clone());
        figure.low
    })
    .unwrap();
    assert_eq!(seen.len(), part.figures.len());
    let rate = |end: fn(&Ranged) -> f64| {
        let can = part.capability(&mut |figure| end(figure)).unwrap();
        can.capacity / can.per_byte_read
    };
    let longest = part.figures["nodes"].high;
    assert_eq!(longest, 127.0);
    assert!(rate(|f| if f.high == 127.0 { f.high } else { f.value }) < rate(|f| f.value));
}
