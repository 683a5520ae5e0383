//! Texts of addresses.
use super::*;

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
    assert!(what.contains("zmq://") && hint.contains("zmq://HOST:31001"), "{what} {hint}");
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
    let counter = Counter { offset: 2, bytes: 6, is_little_endian: false, step: 8192 };
    assert_eq!(packets.options, Options { window: 8, ..Options::new(Format::Counter(counter)) });
    assert_eq!((packets.interface.as_deref(), packets.buffer_bytes), (Some("eth2"), 8 << 20));
    let packets = parse("vdif://[::]:5000,skip=8,frames-per-second=25600");
    let vdif = Format::Vdif(Vdif { frames_per_second: Some(25_600) });
    assert_eq!(packets.options, Options { skip: 8, ..Options::new(vdif) });
}

#[test]
fn options_that_packets_do_not_have() {
    let why = |text: &str| text.parse::<SourceAddress>().unwrap_err().to_string();
    assert!(why("udp://:4001,frames-per-second=3").contains("udp:// has counter, step"));
    assert!(why("vdif://:4001,counter=u64be").contains("vdif:// has frames-per-second"));
    assert!(why("udp://:4001,window=5000").contains("at most 4096"));
    assert!(why("udp://:4001,step=0").contains("must be at least 1"));
    assert!(why("udp://:4001,counter=u63be").contains("expected a type and offset"));
    assert!(why("udp://:4001,skip").contains("expected OPTION=VALUE"));
    assert!(why("udp://4001").contains("not HOST:PORT"));
}
