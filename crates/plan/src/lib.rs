//! What to run: units, detector profiles, and plans checked before anything is touched.
