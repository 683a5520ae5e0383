//! A proof is good for one side, one token and one pair of nonces.
use super::*;

fn credentials(token: &str) -> Credentials {
    Credentials { token: Token::new(token).unwrap(), random: || Ok("0".repeat(SECRET_BYTES)) }
}

fn nonces(client: &str, server: &str) -> Nonces {
    Nonces { client: client.repeat(SECRET_BYTES), server: server.repeat(SECRET_BYTES) }
}

#[test]
fn a_proof_is_for_its_token_side_and_nonces_alone() {
    let (ours, pair) = (credentials("0123456789abcdef"), nonces("a", "b"));
    let proof = ours.prove(Side::Client, &pair);
    assert!(ours.accepts(Side::Client, &pair, &proof));
    assert!(!ours.accepts(Side::Server, &pair, &proof), "it cannot be sent back");
    for other in [nonces("a", "c"), nonces("c", "b"), nonces("b", "a")] {
        assert!(!ours.accepts(Side::Client, &other, &proof), "{other:?}");
    }
    assert!(!credentials("0123456789abcdeF").accepts(Side::Client, &pair, &proof));
    for bad in ["", "0", &proof[1..], &format!("{proof}0"), &"0".repeat(64), &"ü".repeat(32)] {
        assert!(!ours.accepts(Side::Client, &pair, bad), "{bad}");
    }
    assert!(!proof.contains("0123456789abcdef"));
}

#[test]
fn without_random_bytes_there_is_no_nonce() {
    assert!(credentials("0123456789abcdef").draw().is_ok());
    for random in [|| Err(std::io::Error::other("none")), || Ok(String::new())] as [Random; 2] {
        assert!(Credentials { random, ..credentials("0123456789abcdef") }.draw().is_err());
    }
}
