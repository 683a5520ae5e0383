//! Badges.
