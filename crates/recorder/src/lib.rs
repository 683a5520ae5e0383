//! The pipeline from socket to durable segment, run control and drains.
