//! The other end of a connection: how it is named, where it may come from, and the secret that lets it in.
//!
//! Invariants: a name is resolved once; a token reaches no log and is compared in constant time.
mod endpoint;
mod prefix;
mod token;

pub use endpoint::{Endpoint, EndpointError};
pub use prefix::{Prefix, PrefixError};
pub use token::{Token, TokenError};
