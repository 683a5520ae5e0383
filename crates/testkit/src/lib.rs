//! Tests only: namespaces, seeded faults, fixtures.
