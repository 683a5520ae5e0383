//! Configuration of Zenoh. Discovery and everything else that fleets do not use is off.
use std::net::SocketAddr;
use std::path::Path;

use ::zenoh::{Config, Error};
use serde_json::{Value, json};

use super::certificates::TlsFiles;
use super::seal::{HEARTBEAT_BYTES_MAX, ORDER_BYTES_MAX};
use crate::message::HostId;

/// Timeout for opening a session, ms.
const OPEN_MS: u64 = 5_000;
/// Shortest and longest interval of reconnection attempts, ms.
const RETRY_MS: [u64; 2] = [100, 1_000];
/// Longest waits for space in the full queue of a peer, µs: for one batch, and for a message of several.
const QUEUE_WAITS_US: [u64; 2] = [200, 50_000];
/// Batches of 64 kB in the queue of a peer.
const QUEUE_BATCHES: u64 = 16;
/// Allowance for the headers of Zenoh, bytes.
const OVERHEAD_BYTES: usize = 4_096;

/// Configuration of the controller.
pub(super) fn router(
    address: SocketAddr,
    dictionary: &Path,
    hosts: HostId,
    tls: Option<&TlsFiles>,
) -> Result<Config, Error> {
    let mut config = common(HEARTBEAT_BYTES_MAX)?;
    set(&mut config, "mode", &json!("router"))?;
    let (endpoint, limit) = (endpoint(address, tls), format!("#tls_handshake_timeout_ms={OPEN_MS}"));
    let listen = if tls.is_some() { endpoint + &limit } else { endpoint };
    set(&mut config, "listen/endpoints", &json!([listen]))?;
    if let Some(tls) = tls {
        set_tls(&mut config, tls, "listen")?;
    }
    // Limits how long a connection may stay without authentication.
    set(&mut config, "transport/unicast/accept_timeout", &json!(OPEN_MS))?;
    set(&mut config, "transport/unicast/max_sessions", &json!(hosts.saturating_mul(2).max(16)))?;
    set(&mut config, "transport/auth/usrpwd/dictionary_file", &json!(dictionary))?;
    Ok(config)
}

/// Configuration of a host.
pub(super) fn client(
    address: SocketAddr,
    user: &str,
    password: &str,
    tls: Option<&TlsFiles>,
) -> Result<Config, Error> {
    let mut config = common(ORDER_BYTES_MAX)?;
    set(&mut config, "mode", &json!("client"))?;
    set(&mut config, "listen/endpoints", &json!([]))?;
    set(&mut config, "connect/endpoints", &json!([endpoint(address, tls)]))?;
    if let Some(tls) = tls {
        set_tls(&mut config, tls, "connect")?;
    }
    let retry = json!({"period_init_ms": RETRY_MS[0], "period_max_ms": RETRY_MS[1]});
    set(&mut config, "connect/retry", &retry)?;
    set(&mut config, "transport/unicast/open_timeout", &json!(OPEN_MS))?;
    set(&mut config, "transport/auth/usrpwd/user", &json!(user))?;
    set(&mut config, "transport/auth/usrpwd/password", &json!(password))?;
    Ok(config)
}

/// Address in the syntax of Zenoh. With TLS, it takes everything before the last colon as the name of the
/// server, so an IPv6 address must have no brackets.
fn endpoint(address: SocketAddr, tls: Option<&TlsFiles>) -> String {
    match tls {
        Some(_) => format!("tls/{}:{}", address.ip(), address.port()),
        None => format!("tcp/{address}"),
    }
}

/// Sets the certificates of one side: `listen` or `connect`. Each side must have one.
///
/// The address of the controller must be in its certificate, because Zenoh always accepts certificates of
/// public authorities too: without this check, that of any web server would do.
fn set_tls(config: &mut Config, tls: &TlsFiles, side: &str) -> Result<(), Error> {
    let mut set_at = |key: &str, value: Value| set(config, &format!("transport/link/tls/{key}"), &value);
    set_at("enable_mtls", json!(true))?;
    set_at("verify_name_on_connect", json!(true))?;
    set_at("root_ca_certificate", json!(tls.peer.path()))?;
    set_at(&format!("{side}_certificate"), json!(tls.certificate.path()))?;
    set_at(&format!("{side}_private_key"), json!(tls.key.path()))
}

/// Settings of both. Zenoh drops messages longer than `bytes_max`.
fn common(bytes_max: usize) -> Result<Config, Error> {
    let mut config = Config::default();
    let bytes_max = bytes_max + OVERHEAD_BYTES;
    for (key, value) in [
        ("scouting/multicast/enabled", json!(false)),
        ("scouting/gossip/enabled", json!(false)),
        ("timestamping/enabled", json!(false)),
        ("transport/link/rx/max_message_size", json!(bytes_max)),
        ("transport/link/tx/queue/size/interactive_high", json!(QUEUE_BATCHES)),
        (
            "transport/link/tx/queue/congestion_control/drop",
            json!({
                "wait_before_drop": QUEUE_WAITS_US[0],
                "max_wait_before_drop_fragments": QUEUE_WAITS_US[1],
            }),
        ),
    ] {
        set(&mut config, key, &value)?;
    }
    Ok(config)
}

fn set(config: &mut Config, key: &str, value: &Value) -> Result<(), Error> {
    config.insert_json5(key, &value.to_string())
}
