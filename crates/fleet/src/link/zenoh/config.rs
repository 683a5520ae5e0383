//! Configuration of Zenoh. Discovery and everything else that fleets do not use is off.
use std::path::Path;

use ::zenoh::{Config, Error};
use serde_json::{Value, json};

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
pub(super) fn router(endpoint: &str, dictionary: &Path, hosts: HostId) -> Result<Config, Error> {
    let mut config = common(HEARTBEAT_BYTES_MAX)?;
    set(&mut config, "mode", &json!("router"))?;
    set(&mut config, "listen/endpoints", &json!([endpoint]))?;
    // Limits how long a connection may stay without authentication.
    set(&mut config, "transport/unicast/accept_timeout", &json!(OPEN_MS))?;
    set(&mut config, "transport/unicast/max_sessions", &json!(sessions_max(hosts)))?;
    set(&mut config, "transport/auth/usrpwd/dictionary_file", &json!(dictionary))?;
    Ok(config)
}

/// Limit on sessions of `hosts` hosts. A host that connects again may have two.
pub(super) fn sessions_max(hosts: HostId) -> HostId {
    hosts.saturating_mul(2).max(16)
}

/// Configuration of a host.
pub(super) fn client(endpoint: &str, user: &str, password: &str) -> Result<Config, Error> {
    let mut config = common(ORDER_BYTES_MAX)?;
    set(&mut config, "mode", &json!("client"))?;
    set(&mut config, "listen/endpoints", &json!([]))?;
    set(&mut config, "connect/endpoints", &json!([endpoint]))?;
    let retry = json!({"period_init_ms": RETRY_MS[0], "period_max_ms": RETRY_MS[1]});
    set(&mut config, "connect/retry", &retry)?;
    set(&mut config, "transport/unicast/open_timeout", &json!(OPEN_MS))?;
    set(&mut config, "transport/auth/usrpwd/user", &json!(user))?;
    set(&mut config, "transport/auth/usrpwd/password", &json!(password))?;
    Ok(config)
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
