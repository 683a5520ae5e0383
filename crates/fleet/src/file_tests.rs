//! Fleet files: valid ones, each mistake with its hint, and any text.
use keepup_error::ErrorClass;
use proptest::prelude::*;

use super::*;

const SMALL: &str = r#"
name = "hall"
listen = "127.0.0.1:7650"
[launcher]
preset = "ssh"
[[host]]
name = "rec1"
role = "recorder"
volumes = ["/data/a"]
"#;

fn parse(text: &str) -> FleetFile {
    FleetFile::parse(text).unwrap()
}

/// Cause and hint of the error of a file.
fn refusal(text: &str) -> (String, String) {
    let error = FleetFile::parse(text).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Usage);
    let what = error.to_string();
    let cause = what.strip_prefix("cannot use the fleet file: ").unwrap_or_else(|| panic!("{what}"));
    (cause.to_owned(), error.hint().unwrap_or_default().into_owned())
}

/// Refusal of the small file with a replacement.
fn with(from: &str, to: &str) -> (String, String) {
    assert!(SMALL.contains(from), "{from}");
    refusal(&SMALL.replacen(from, to, 1))
}

/// Refusal of the small file with more text.
fn and(more: &str) -> (String, String) {
    refusal(&format!("{SMALL}{more}"))
}

#[test]
fn a_small_file_has_defaults() {
    let file = parse(SMALL);
    assert_eq!((file.name.as_str(), file.listen), ("hall", "127.0.0.1:7650".parse().unwrap()));
    assert_eq!((file.timing, file.join_time, file.parallel), (Timing::recording(), JOIN_TIME, PARALLEL));
    assert!(file.tls);
    let [host] = &file.hosts[..] else { panic!("{file:?}") };
    assert_eq!((host.name.as_str(), host.role, host.data), ("rec1", Role::Recorder, None));
    assert_eq!(host.volumes, [PathBuf::from("/data/a")]);
    let command = "ssh -T -o BatchMode=yes -o ConnectTimeout=10 rec1 keepup fleet agent --name rec1";
    assert_eq!(host.command.join(" "), command);
    assert_eq!((file.host("rec1"), file.host("rec2")), (Some(0), None));
}

#[test]
fn a_full_file() {
    let file = parse(
        r#"
        name = "hall-3"
        listen = "127.0.0.1"
        tls = false
        [timing]
        base = "trial"
        heartbeat = "500 ms"
        orphan = "10 s"
        [launcher]
        command = ["ssh", "-o", "ProxyCommand=nc a b", "{host}", "exec {agent}"]
        program = "/opt/keepup"
        parallel = 4
        join_time = "1m"
        [[host]]
        name = "rec1"
        address = "daq@10.0.0.5"
        role = "recorder"
        volumes = ["/data/a", "/data/b"]
        data = "192.168.7.1"
        [[host]]
        name = "rec2"
        role = "spare"
        volumes = ["/data/a"]
        launcher = "ip netns exec {host} {agent}"
        [[host]]
        name = "src"
        role = "source"
        "#,
    );
    assert_eq!((file.listen.port(), file.tls), (7650, false));
    let timing = Timing { heartbeat_ns: 500_000_000, orphan_ns: 10_000_000_000, ..Timing::trial() };
    assert_eq!((file.timing, file.parallel, file.join_time.as_secs()), (timing, 4, 60));
    assert_eq!(file.roles(), [Role::Recorder, Role::Spare, Role::Source]);
    let [a, b, c] = &file.hosts[..] else { panic!("{file:?}") };
    let agent = "exec /opt/keepup fleet agent --name rec1";
    assert_eq!(a.command, ["ssh", "-o", "ProxyCommand=nc a b", "daq@10.0.0.5", agent]);
    assert_eq!(b.command.join(" "), "ip netns exec rec2 /opt/keepup fleet agent --name rec2");
    assert_eq!(c.command[3], "src");
    assert_eq!(a.data, Some("192.168.7.1".parse().unwrap()));
}

#[test]
fn presets() {
    for (preset, command) in [
        ("srun", "srun --nodelist=rec1 --nodes=1 --ntasks=1 --overlap --unbuffered"),
        ("kubectl", "kubectl exec -i rec1 --"),
        ("netns", "ip netns exec rec1"),
    ] {
        let file = parse(&SMALL.replace("ssh", preset));
        assert_eq!(file.hosts[0].command.join(" "), format!("{command} keepup fleet agent --name rec1"));
    }
    let file = parse(&SMALL.replace("ssh", "local"));
    assert_eq!(file.hosts[0].command, ["keepup", "fleet", "agent", "--name", "rec1"]);
}

#[test]
fn names_are_checked() {
    for bad in ["", "-a", ".a", "a b", "a/b", "a$b", "é", &"x".repeat(64)] {
        let (why, hint) = with("\"rec1\"", &format!("{bad:?}"));
        assert_eq!(why, format!("the host's name {bad:?} is not a valid name"));
        assert!(hint.starts_with("1 to 63 letters"));
        let (why, _) = with("\"hall\"", &format!("{bad:?}"));
        assert_eq!(why, format!("the fleet's name {bad:?} is not a valid name"));
    }
    let again = "[[host]]\nname = \"rec1\"\nrole = \"source\"\n";
    assert_eq!(and(again).0, "two hosts have the name \"rec1\"");
}

#[test]
fn arguments_of_launchers_are_checked() {
    for bad in ["-oProxyCommand=x", "", "a b", "a;b", "$(x)", "a\\nb"] {
        let (why, hint) = and(&format!("address = \"{bad}\"\n"));
        assert!(why.starts_with("host rec1: the address "), "{why}");
        assert!(hint.starts_with("such as "));
    }
    for bad in ["", "-x", "a b", "/opt/k;rm", "$HOME/keepup"] {
        let (why, hint) = with("[[host]]", &format!("program = \"{bad}\"\n[[host]]"));
        assert!(why.starts_with("launcher: the program ") && hint.contains("such as"), "{why}");
    }
    for (command, why) in [
        ("\"\"", "it is empty"),
        ("[]", "it is empty"),
        ("\"{host} {agent}\"", "it does not begin with a program"),
        ("[\"\", \"{host}\", \"{agent}\"]", "it does not begin with a program"),
        ("\"ssh {agent}\"", "it lacks {host}"),
        ("\"ssh {host}\"", "it must have {agent} once"),
        ("\"ssh {host} {agent} {agent}\"", "it must have {agent} once"),
        ("[\"ssh\", \"{host}\\u0000\", \"{agent}\"]", "an argument is too long or has a NUL character"),
        (&format!("\"ssh {{host}} {{agent}} {}\"", "x ".repeat(300)), "it has too many arguments"),
        (
            &format!("\"ssh {{host}} {{agent}} {}\"", "x".repeat(5_000)),
            "an argument is too long or has a NUL character",
        ),
    ] {
        let (cause, hint) = with("preset = \"ssh\"", &format!("command = {command}"));
        assert_eq!(cause, format!("launcher: invalid command: {why}"));
        assert!(hint.contains("ssh -p 2222 {host} {agent}"));
        let (cause, _) = and(&format!("launcher = {command}\n"));
        assert_eq!(cause, format!("host rec1: invalid command: {why}"));
    }
}

#[test]
fn a_launcher_is_a_preset_or_a_command() {
    let why = "launcher: it needs either a preset or a command";
    assert_eq!(with("preset = \"ssh\"", "").0, why);
    assert_eq!(with("preset = \"ssh\"", "preset = \"ssh\"\ncommand = \"ssh {host} {agent}\"").0, why);
    assert!(with("preset = \"ssh\"", "preset = \"telnet\"").0.contains("unknown variant `telnet`"));
    assert_eq!(with("preset", "parallel = 0\npreset").0, "launcher: parallel is 0, not 1 to 1024");
    assert_eq!(with("preset", "join_time = \"1 ms\"\npreset").0, "join_time is 1ms, not 20 ms to 24 h");
}

#[test]
fn the_address_of_the_controller_is_one_that_agents_reach() {
    for bad in ["0.0.0.0:7650", "[::]:7650", "127.0.0.1:0"] {
        let (why, hint) = with("127.0.0.1:7650", bad);
        assert_eq!(why, format!("listen: agents cannot connect to {bad}"));
        assert!(hint.starts_with("the management address"));
    }
    assert!(with("127.0.0.1:7650", "keepup-test.invalid:1").0.starts_with("listen: cannot resolve "));
    assert!(with("127.0.0.1:7650", "a:b:c").0.starts_with("listen: cannot use "));
}

#[test]
fn volumes_are_checked() {
    for bad in ["data", "../data", "/data/../etc", ""] {
        let (why, hint) = with("/data/a", bad);
        assert_eq!(why, format!("host rec1: the volume {bad:?} is not an absolute path"));
        assert!(hint.contains("/data/disk0"));
    }
    assert_eq!(
        with("\"/data/a\"", "\"/data/a\", \"/data/a\"").0,
        "host rec1: the volume /data/a occurs twice"
    );
    assert!(with("/data/a", &format!("/{}", "x".repeat(600))).0.contains("is not an absolute path"));
    let many: String = (0..65).map(|n| format!("\"/data/{n}\",")).collect();
    assert_eq!(with("\"/data/a\"", &many).0, "host rec1: 65 volumes, limit 64");
    let none = with("volumes = [\"/data/a\"]", "");
    assert_eq!(
        none,
        ("host rec1: it records, but has no volumes".into(), "volumes = [\"/data/disk0\"]".into())
    );
    let source = and("[[host]]\nname = \"s\"\nrole = \"source\"\nvolumes = [\"/a\"]\n");
    assert_eq!(source.0, "host s: a source has no volumes");
}

#[test]
fn a_fleet_has_hosts_and_a_recorder() {
    let (head, _) = SMALL.split_once("[[host]]").unwrap();
    assert_eq!(refusal(head).0, "it has no hosts");
    assert_eq!(with("\"recorder\"\nvolumes = [\"/data/a\"]", "\"source\"").0, "no host is a recorder");
    let many: String =
        (0..4_096).map(|n| format!("[[host]]\nname = \"s{n}\"\nrole = \"source\"\n")).collect();
    assert_eq!(and(&many).0, "it has 4097 hosts, limit 4096");
    parse(&format!("{SMALL}{}", many.split_once("[[host]]\nname = \"s4095\"").unwrap().0));
}

#[test]
fn timings_are_checked() {
    let with = |lines: &str| with("[launcher]", &format!("[timing]\n{lines}\n[launcher]"));
    assert_eq!(with("heartbeat = \"10 ms\"").0, "timing: heartbeat is 10ms, not 20 ms to 24 h");
    assert_eq!(with("prepare = \"2 days\"").0, "timing: prepare is 172800s, not 20 ms to 24 h");
    assert_eq!(with("lease = \"440 ms\"").0, "timing: the lease is shorter than three heartbeats");
    assert_eq!(with("orphan = \"500 ms\"").0, "timing: orphan is shorter than the lease");
    assert!(with("heartbeat = 3").0.contains("heartbeat"));
    assert!(with("heartbeats = \"1 s\"").0.contains("unknown field `heartbeats`"));
}

#[test]
fn unknown_keys_are_refused() {
    for (from, key) in
        [("[launcher]", "x = 1\n[launcher]"), ("preset", "x = 1\npreset"), ("role", "x = 1\nrole")]
    {
        assert!(with(from, key).0.contains("unknown field `x`"), "{key}");
    }
}

#[test]
fn a_file_is_read_and_named_in_errors() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("fleet.toml");
    let error = |path: &Path| FleetFile::read(path).unwrap_err().to_string();
    assert!(error(&path).ends_with("fleet.toml: No such file or directory (os error 2)"));
    let hint = |path: &Path| FleetFile::read(path).unwrap_err().hint().map(std::borrow::Cow::into_owned);
    assert!(hint(&path).unwrap().contains("docs/book/fleet.md"));
    assert_eq!(hint(Path::new("/dev/null/x")), None);
    std::fs::write(&path, SMALL).unwrap();
    assert_eq!(FleetFile::read(&path).unwrap(), parse(SMALL));
    std::fs::write(&path, "name = 1").unwrap();
    assert!(error(&path).contains("fleet.toml: TOML parse error"), "{}", error(&path));
    std::fs::write(&path, "#".repeat(5 << 20)).unwrap();
    assert!(error(&path).ends_with("it is longer than 4194304 bytes"));
}

/// Texts made of what fleet files are made of.
fn texts() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("[[host]]".to_owned()),
        Just("[launcher]".to_owned()),
        Just("[timing]".to_owned()),
        Just("preset = \"local\"".to_owned()),
        Just("listen = \"127.0.0.1:1\"".to_owned()),
        Just("role = \"recorder\"".to_owned()),
        Just("role = \"source\"".to_owned()),
        ("(name|address|listen|program|launcher|command|data|heartbeat|lease)", "[ -~]{0,12}")
            .prop_map(|(key, value)| format!("{key} = {value:?}")),
        proptest::collection::vec("/?[a-z./]{0,6}", 0..3).prop_map(|paths| format!("volumes = {paths:?}")),
        "[ -~]{0,20}",
    ];
    proptest::collection::vec(line, 0..14).prop_map(|lines| lines.join("\n"))
}

proptest! {
    /// Never a panic; what is accepted keeps its promises.
    #[test]
    fn any_text_is_refused_or_valid(text in texts(), is_appended: bool) {
        let text = if is_appended { format!("{SMALL}{text}") } else { text };
        let Ok(file) = FleetFile::parse(&text) else { return Ok(()) };
        prop_assert!(!file.hosts.is_empty() && file.roles().contains(&Role::Recorder));
        for (number, host) in (0..).zip(&file.hosts) {
            prop_assert_eq!(file.host(&host.name), Some(number));
            prop_assert!(host.volumes.iter().all(|volume| volume.is_absolute()));
            prop_assert!(host.command.iter().any(|argument| argument.ends_with(&host.name)));
            prop_assert!(!host.command.iter().any(|argument| argument.contains('\0')));
        }
        prop_assert!(file.timing.lease_ns >= 3 * file.timing.heartbeat_ns);
    }
}

#[test]
fn a_file_without_a_launcher_has_a_hint() {
    let error = FleetFile::parse("name = \"x\"\nlisten = \"127.0.0.1:7650\"\nhost = []\n").unwrap_err();
    assert!(error.to_string().contains("missing field `launcher`"), "{error}");
    assert!(error.hint().unwrap().contains("[launcher]"));
}

#[test]
fn the_first_recorders_keep_all_sources() {
    let host = |name: &str, role: &str| {
        let volumes = if role == "source" { "" } else { "volumes = [\"/data/a\"]\n" };
        format!("[[host]]\nname = \"{name}\"\nrole = \"{role}\"\n{volumes}")
    };
    let more = [("rec2", "recorder"), ("cam", "source"), ("rec3", "recorder"), ("x", "spare")];
    let file = parse(&format!("{SMALL}{}", more.map(|(name, role)| host(name, role)).concat()));
    let names = |file: &FleetFile| file.hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>();
    let (two, left_out) = file.clone().first_recorders(2).unwrap();
    assert_eq!(
        (names(&two), left_out),
        (["rec1", "rec2", "cam"].map(str::to_owned).into(), vec!["rec3".into()])
    );
    assert_eq!(file.clone().first_recorders(3).unwrap().1, Vec::<String>::new());
    for count in [0, 4, u32::MAX] {
        let refused = file.clone().first_recorders(count).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Usage);
        assert!(
            refused.to_string().ends_with(&format!("{count} recorders were requested, fleet hall has 3"))
        );
    }
}

#[test]
fn drain_hosts_need_time_at_the_end_of_a_run() {
    let drain = "[[host]]\nname = \"tape\"\nrole = \"drain\"\ndata = \"10.0.0.9\"\n";
    let file = parse(&format!("{SMALL}{drain}"));
    assert_eq!((file.hosts[1].role, file.hosts[1].volumes.len()), (Role::Drain, 0));
    let (cause, hint) = refusal(&format!("{SMALL}{drain}[timing]\nfinish = \"50 s\"\n"));
    assert!(cause.contains("finish is shorter than 60 s"), "{cause}");
    assert_eq!(hint, "finish = \"60 s\"");
}
