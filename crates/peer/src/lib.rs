//! Network peers: endpoints, address ranges, and the token for access.
//!
//! Invariants: a name is resolved once; a token reaches no log and is compared in constant time.
mod endpoint;
mod listen;
mod prefix;
mod token;

pub use endpoint::{Endpoint, EndpointError};
pub use listen::listen_hint;
pub use prefix::{Prefix, PrefixError};
pub use token::{Token, TokenError};
