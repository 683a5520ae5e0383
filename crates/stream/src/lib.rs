//! Event identity, the wire protocol, the source simulator and the ledger.
