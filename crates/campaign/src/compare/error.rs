//! What can go wrong with a comparison.

/// Why nothing was compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// No result at all.
    #[error("compare results: none was given\nhint: keepup compare RESULT RESULT")]
    Nothing,
    /// Only one system.
    #[error(
        "compare results: {name} is the only system\n\
         hint: name a second result, or one that measured several places"
    )]
    OneSystem {
        /// Its name.
        name: String,
    },
    /// Different tests.
    #[error(
        "compare {first} with {second}: one is of `{first_workload}`, the other of `{second_workload}`; \
         their figures do not mean the same\nhint: compare results of the same test"
    )]
    DifferentWorkloads {
        /// One system.
        first: String,
        /// What it was put to.
        first_workload: String,
        /// Another.
        second: String,
        /// What that was put to.
        second_workload: String,
    },
    /// No system of that name.
    #[error(
        "compare with the baseline {name}: there is no such system\nhint: there are: {}",
        known.join(", ")
    )]
    NoSuchBaseline {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Two systems of one name.
    #[error("compare results: two systems are called {name}\nhint: name them, as in fast={name}")]
    SameName {
        /// The name.
        name: String,
    },
    /// A paper that has nothing of the test.
    #[error("compare with what {paper} published: {why}")]
    NotPublished {
        /// Its name.
        paper: String,
        /// Why not, possibly with a hint on a second line.
        why: String,
    },
    /// No figure in common.
    #[error(
        "compare results: no figure is in two of them\n\
         hint: compare results of the same settings, or leave --only out"
    )]
    NothingShared,
}
