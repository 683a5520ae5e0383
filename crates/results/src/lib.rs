//! What was measured: event and result types, result directories, schema.
