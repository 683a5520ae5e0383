//! Valid tokens, and that they are not printed.
use super::*;

const SECRET: &str = "0123456789abcdef";

#[test]
fn a_token_is_long_and_visible() {
    assert_eq!(
        Token::new("  0123456789abcdef\n").unwrap().reveal(),
        SECRET,
        "surrounding white space is ignored"
    );
    for bad in ["", "short", "0123456789 abcdef", "0123456789abcdeé", &"x".repeat(513)] {
        assert!(Token::new(bad).unwrap_err().hint().unwrap().starts_with("at least 16"), "{bad:?}");
    }
}

#[test]
fn a_token_is_equal_only_to_itself() {
    let token = Token::new(SECRET).unwrap();
    for other in ["", "0123456789abcdeF", "0123456789abcde", "0123456789abcdef0"] {
        assert!(!token.is(other.as_bytes()), "{other}");
    }
    assert!(token.is(SECRET.as_bytes()));
}

#[test]
fn a_token_does_not_reach_a_log() {
    assert_eq!(format!("{:?}", Token::new(SECRET).unwrap()), "Token(…)");
}
