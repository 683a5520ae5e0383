//! Network tests whose outcome depends on the machine's speed.
mod links;
mod peers;
