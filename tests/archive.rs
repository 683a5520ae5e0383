//! Archives in an object store, against a server of S3 that can fail.
mod copies;
mod faults;
mod retention;
mod server;
