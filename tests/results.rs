//! Stored results: reports, comparisons, campaigns, the model, published papers, the catalog.
mod campaign;
mod coherence;
mod compare;
mod output;
mod predict;
mod report;
mod reproduce;
mod serve;
