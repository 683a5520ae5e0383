//! What the results of all tests begin and end with, whatever was measured between.
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::stored::Headed;
use crate::summary::Kind;

/// What is known of a test before its first run.
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// Identity of the result.
    pub id: String,
    /// Version of keepup that measures.
    pub tool_version: String,
    /// Start of the measurement, ns since 1970.
    pub created_unix_ns: u64,
    /// Exact command that repeats the measurement.
    pub command: String,
    /// Name of the test.
    pub workload: String,
    /// The test's settings.
    pub plan: serde_json::Value,
    /// Environment record of the machine and of what is measured.
    pub environment: serde_json::Value,
}

/// How a test ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// What cut the measurement short, if anything did.
    pub failure: Option<String>,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

/// The result of one kind of test.
pub trait TestSummary: Serialize + DeserializeOwned + Headed {
    /// The kind.
    const KIND: Kind;
    /// Version of the layout; rises whenever a reader of the old one could misread the new one.
    const SCHEMA_VERSION: u32;

    /// The result before the first run.
    fn begun(begun: &Begun) -> Self;

    /// Writes down how the test ended.
    fn end(&mut self, ended: Ended);
}

/// Makes the result of a kind of test: what all begin with, its own fields, what all end with. Own fields
/// are empty before the first run.
macro_rules! test_summary {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident: $kind:expr, version $version:literal {
            $($(#[$of_field:meta])* pub $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Version of this layout.
            pub schema_version: u32,
            /// What was done.
            pub kind: $crate::summary::Kind,
            /// Identity of the result.
            pub id: String,
            /// Version of keepup that measured.
            pub tool_version: String,
            /// Start of the measurement, RFC 3339, UTC.
            pub created: String,
            /// Exact command that repeats the measurement.
            pub command: String,
            /// Name of the test.
            pub workload: String,
            /// The test's settings.
            pub plan: serde_json::Value,
            /// Environment record of the machine and of what is measured.
            pub environment: serde_json::Value,
            $($(#[$of_field])* pub $field: $type,)*
            /// What cut the measurement short, if anything did; what was measured up to there stands.
            pub failure: Option<String>,
            /// Whether the user stopped it.
            pub interrupted: bool,
        }

        impl $crate::test::TestSummary for $name {
            const KIND: $crate::summary::Kind = $kind;
            const SCHEMA_VERSION: u32 = $version;

            fn begun(begun: &$crate::test::Begun) -> Self {
                Self {
                    schema_version: $version,
                    kind: $kind,
                    id: begun.id.clone(),
                    tool_version: begun.tool_version.clone(),
                    created: $crate::directory::rfc3339(begun.created_unix_ns),
                    command: begun.command.clone(),
                    workload: begun.workload.clone(),
                    plan: begun.plan.clone(),
                    environment: begun.environment.clone(),
                    $($field: Default::default(),)*
                    failure: None,
                    interrupted: false,
                }
            }

            fn end(&mut self, ended: $crate::test::Ended) {
                self.failure = ended.failure;
                self.interrupted = ended.interrupted;
            }
        }

        impl $crate::stored::Headed for $name {
            fn head(&self) -> $crate::stored::Head<'_> {
                $crate::stored::Head {
                    kind: self.kind,
                    id: &self.id,
                    tool_version: &self.tool_version,
                    created: &self.created,
                    command: &self.command,
                    workload: &self.workload,
                    plan: &self.plan,
                    environment: &self.environment,
                    failure: self.failure.as_deref(),
                    interrupted: self.interrupted,
                }
            }
        }
    };
}

pub(crate) use test_summary;
