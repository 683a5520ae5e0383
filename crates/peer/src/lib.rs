//! The other end of a connection: how it is named, and the secret that lets it in.
//!
//! Invariants: a name is resolved once; a token reaches no log and is compared in constant time.
mod endpoint;
mod token;

pub use endpoint::{Endpoint, EndpointError};
pub use token::{Token, TokenError};
