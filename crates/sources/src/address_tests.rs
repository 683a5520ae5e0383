//! Texts of addresses.
use keepup_error::Diagnostic as _;

use super::*;
use crate::packets::{Counter, Format, Spead, Vdif};

#[test]
fn a_host_and_a_port() {
    let address: SourceAddress = "zmq://127.0.0.1:9000".parse().unwrap();
    assert_eq!(address.to_string(), "zmq://127.0.0.1:9000");
    let address: SourceAddress = "zmq://[::1]".parse().unwrap();
    assert_eq!(address.to_string(), "zmq://[::1]:31001");
}

#[test]
fn a_pv_and_its_queue() {
    let parse = |text: &str| match text.parse::<SourceAddress>() {
        Ok(SourceAddress::PvAccess(pv)) => (pv.endpoint.address().port(), pv.options.name, pv.options.queue),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(parse("pva://127.0.0.1/13SIM1:Pva1:Image"), (5075, "13SIM1:Pva1:Image".into(), 16));
    assert_eq!(parse("pva://[::1]:5085/A/B,queue=64"), (5085, "A/B".into(), 64));
    let address: SourceAddress = "pva://127.0.0.1/A,queue=2".parse().unwrap();
    assert_eq!(address.to_string(), "pva://127.0.0.1/A,queue=2");
    assert_eq!(
        (address.prefix(), address.stream_name("A")),
        ("127.0.0.1:5075/A".into(), "127.0.0.1:5075/A".into())
    );
    for text in ["pva://127.0.0.1", "pva://127.0.0.1/", "pva://127.0.0.1/A B", "pva:///A,queue=4"] {
        assert!(text.parse::<SourceAddress>().is_err(), "{text}");
    }
    for option in ["queue=1", "queue=65537", "queue=x", "window=3"] {
        let error = format!("pva://127.0.0.1/A,{option}").parse::<SourceAddress>().unwrap_err().to_string();
        assert!(error.contains("pva:// has queue=N"), "{error}");
    }
}

#[test]
fn what_is_not_an_address() {
    let refused = |text: &str| {
        let error = text.parse::<SourceAddress>().unwrap_err();
        (error.to_string(), error.hint().unwrap().into_owned())
    };
    let (what, hint) = refused("eiger1:31001");
    assert!(what.contains("zmq://") && hint.contains("zmq://HOST for"), "{what} {hint}");
    assert!(refused("zmq://a/b").0.contains("not HOST:PORT"));
    assert!(refused("zmq://no-such-host.invalid").0.contains("cannot resolve"));
}

#[test]
fn packets_and_their_options() {
    let parse = |text: &str| match text.parse::<SourceAddress>() {
        Ok(SourceAddress::Packets(packets)) => packets,
        other => panic!("{text}: {other:?}"),
    };
    let packets = parse("udp://:4001");
    assert_eq!((packets.address, packets.to_string()), (([0, 0, 0, 0], 4001).into(), "udp://:4001".into()));
    assert_eq!(packets.options, Options::new(Format::Counter(Counter::default())));
    let packets =
        parse("udp://239.1.2.3:4001,step=8192,counter=u48be@2,window=8,interface=eth2,buffer=8 MiB");
    let counter = Counter { offset: 2, bytes: 6, step: 8192, ..Counter::default() };
    assert_eq!(packets.options, Options { window: 8, ..Options::new(Format::Counter(counter)) });
    assert_eq!((packets.interface.as_deref(), packets.buffer_bytes), (Some("eth2"), 8 << 20));
    let packets = parse("vdif://[::]:5000,skip=8,frames-per-second=25600");
    let vdif = Format::Vdif(Vdif { frames_per_second: Some(25_600) });
    assert_eq!(packets.options, Options { skip: 8, ..Options::new(vdif) });
}

#[test]
fn options_that_packets_do_not_have() {
    let why = |text: &str| text.parse::<SourceAddress>().unwrap_err().to_string();
    assert!(why("udp://:4001,frames-per-second=3").contains("udp has counter, step"));
    assert!(why("vdif://:4001,counter=u64be").contains("vdif has frames-per-second"));
    assert!(why("udp://:4001,window=5000").contains("at most 4096"));
    assert!(why("udp://:4001,step=0").contains("must be at least 1"));
    assert!(why("udp://:4001,counter=u63be").contains("expected a type and offset"));
    assert!(why("udp://:4001,skip").contains("expected OPTION=VALUE"));
    assert!(why("udp://4001").contains("not HOST:PORT"));
}

#[test]
fn a_path_with_a_comma_gets_a_hint() {
    let hint = |text: &str| text.parse::<SourceAddress>().unwrap_err().hint().unwrap().into_owned();
    assert!(hint("dir:/data/a,b").starts_with("write a comma in a path as ,,"));
    assert!(hint("pcap:a,b.pcap").starts_with("write a comma in a path as ,,"));
}

#[test]
fn capture_files_and_their_options() {
    let parse = |text: &str| match text.parse::<SourceAddress>() {
        Ok(SourceAddress::Capture(capture)) => capture,
        other => panic!("{text}: {other:?}"),
    };
    let capture = parse("pcap:/data/night 7.pcapng");
    assert_eq!(
        (capture.path.to_str(), capture.port, capture.keeps_pace),
        (Some("/data/night 7.pcapng"), None, false)
    );
    assert_eq!(capture.options, Options::of_scheme("udp").unwrap());
    // The format may follow its options.
    let capture = parse("pcap:a.pcap,skip=8,frames-per-second=10,pace=original,port=4001,as=vdif");
    let vdif = Format::Vdif(Vdif { frames_per_second: Some(10) });
    assert_eq!(capture.options, Options { skip: 8, ..Options::new(vdif) });
    assert_eq!((capture.port, capture.keeps_pace), (Some(4001), true));
    assert_eq!(SourceAddress::Capture(capture.clone()).prefix(), "a.pcap");
    let prefix = |text: &str| SourceAddress::Capture(parse(text)).prefix();
    assert_eq!(prefix("pcap:in/\u{202e}a\tb.pcap"), "_a_b.pcap");
    assert_eq!(prefix(&format!("pcap:{}", "x".repeat(250))), "x".repeat(200));
    let why = |text: &str| text.parse::<SourceAddress>().unwrap_err().to_string();
    assert!(why("pcap:").contains("expected pcap:FILE"));
    assert!(why("pcap:a,as=zmq").contains("expected udp, vdif or spead"));
    assert!(why("pcap:a,pace=2").contains("expected original or max"));
    assert!(why("pcap:a,port=70000").contains("0 to 65535"));
    assert!(
        why("pcap:a,buffer=1MiB")
            .contains("udp has counter, step, group, frame, skip, window, streams, from, as, port and pace")
    );
}

#[test]
fn heaps_and_groups() {
    let parse = |text: &str| match text.parse::<SourceAddress>() {
        Ok(SourceAddress::Packets(packets)) => packets.options,
        other => panic!("{text}: {other:?}"),
    };
    let spead = Format::Spead(Spead { step: 8, senders: 4 });
    assert_eq!(
        parse("spead://:7148,step=8,senders=4,window=2"),
        Options { window: 2, ..Options::new(spead) }
    );
    assert_eq!(parse("spead://:7148").window, 4);
    let options = parse("udp://:4001,frame=u64le@0,counter=u32le@8,group=128");
    assert_eq!((options.group, options.frame.map(|place| place.bytes)), (Some(128), Some(8)));
    let why = |text: &str| text.parse::<SourceAddress>().unwrap_err().to_string();
    assert!(why("udp://:4001,frame=u64le,step=2,group=3").contains("step must be 1"));
    assert!(why("udp://:4001,group=0").contains("must be at least 1"));
    assert!(why("udp://:4001,frame=12").contains("expected a type and offset"));
    assert!(why("spead://:4001,window=0").contains("must be at least 1"));
    assert!(
        why("spead://:4001,skip=8")
            .contains("spead has step, senders, window, streams, from, buffer and interface")
    );
    assert!(why("vdif://:4001,frame=u64be").contains("vdif has frames-per-second, group, skip"));
}
