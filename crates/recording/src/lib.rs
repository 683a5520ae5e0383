//! What lies on disk: segment layout, journal, reader and verification.
