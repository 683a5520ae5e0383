//! Commands over the socket, and who may use it.
use super::*;

fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("keepup").join("fleet.sock");
    (place, path)
}

/// Answers the next request.
fn answer(server: &Server, woken: &Receiver<()>, json: &str) -> Command {
    woken.recv_timeout(Duration::from_secs(60)).unwrap();
    let request = server.request().unwrap();
    request.answer_last(json.to_owned());
    request.command
}

fn open(path: &Path) -> (Server, Receiver<()>) {
    let (wake, woken) = mpsc::channel();
    (Server::open(path, Waker::new(move || wake.send(()).unwrap())).unwrap(), woken)
}

#[test]
fn commands_are_answered_until_the_controller_is_gone() {
    let (_place, path) = place();
    let (server, woken) = open(&path);
    for command in Command::ALL {
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| ask(&path, command).unwrap());
            assert_eq!(answer(&server, &woken, "{\"a\":1}"), command);
            assert_eq!(asked.join().unwrap(), "{\"a\":1}");
        });
    }
    drop(server);
    let error = ask(&path, Command::Status).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot use the control socket of the fleet: no controller runs for this file"
    );
    assert_eq!(keepup_error::Diagnostic::hint(&error).as_deref(), Some("keepup fleet up FILE"));
}

#[test]
fn the_socket_is_for_its_user_alone() {
    let (_place, path) = place();
    let (_server, _woken) = open(&path);
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn a_second_controller_is_refused_and_a_dead_ones_socket_replaced() {
    let (_place, path) = place();
    let (server, _woken) = open(&path);
    let error = Server::open(&path, Waker::new(|| {})).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot use the control socket of the fleet: a controller already runs for this file"
    );
    drop(server);
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "left by a killed program");
    let (_server, _woken) = open(&path);
}

#[test]
fn a_directory_that_others_can_change_is_refused() {
    let (place, path) = place();
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    std::fs::set_permissions(path.parent().unwrap(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(
        Server::open(&path, Waker::new(|| {})).unwrap_err().to_string().contains("can be changed by others")
    );
    let link = place.path().join("link");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    assert!(Server::open(&link.join("fleet.sock"), Waker::new(|| {})).is_err());
}

#[test]
fn other_lines_get_no_answer() {
    let (_place, path) = place();
    let (server, _woken) = open(&path);
    for line in ["launch\n", "", &"x".repeat(10_000)] {
        let mut stream = UnixStream::connect(&path).unwrap();
        // The server may have closed its side already.
        drop(stream.write_all(line.as_bytes()));
        drop(stream.shutdown(std::net::Shutdown::Write));
        let mut answer = String::new();
        drop(stream.read_to_string(&mut answer));
        assert_eq!(answer, "");
    }
    assert!(server.request().is_none());
}

#[test]
fn the_socket_follows_from_the_real_path_of_the_file() {
    let (place, _) = place();
    let file = place.path().join("fleet.toml");
    assert!(socket_of(&file).is_err());
    std::fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(&file, place.path().join("other.toml")).unwrap();
    let socket = socket_of(&file).unwrap();
    assert_eq!(socket_of(&place.path().join("other.toml")).unwrap(), socket);
    std::fs::write(place.path().join("third.toml"), "").unwrap();
    assert_ne!(socket_of(&place.path().join("third.toml")).unwrap(), socket);
}
