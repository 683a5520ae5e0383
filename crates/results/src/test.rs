//! Common first and last fields of all test results.
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::head::{Headed, Kind};

/// Properties of a test known before its first run.
#[derive(Debug, Clone, PartialEq)]
pub struct Begun {
    /// Identity of the result.
    pub id: String,
    /// Version of keepup.
    pub tool_version: String,
    /// Start of the measurement, ns since the Unix epoch.
    pub created_unix_ns: u64,
    /// Command that repeats the measurement.
    pub command: String,
    /// Name of the test.
    pub workload: String,
    /// Settings of the test.
    pub plan: serde_json::Value,
    /// Environment record of machine and test object.
    pub environment: serde_json::Value,
}

/// End of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// Error that ended the measurement early, if any.
    pub failure: Option<String>,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

/// The result of one kind of test.
pub trait TestSummary: Serialize + DeserializeOwned + Headed {
    /// The kind.
    const KIND: Kind;
    /// Version of the layout; incremented when an older reader could misread a newer file.
    const SCHEMA_VERSION: u32;

    /// Result before the first run.
    fn begun(begun: &Begun) -> Self;

    /// Records the end of the test.
    fn end(&mut self, ended: Ended);
}

/// Defines the result type of a kind of test: common first fields, its own fields, common last
/// fields. Own fields are empty before the first run.
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
            /// Layout version.
            pub schema_version: u32,
            /// Kind of result.
            pub kind: $crate::head::Kind,
            /// Identity of the result.
            pub id: String,
            /// Version of keepup that measured.
            pub tool_version: String,
            /// Start of the measurement, RFC 3339, UTC.
            pub created: String,
            /// Command that repeats the measurement.
            pub command: String,
            /// Name of the test.
            pub workload: String,
            /// Settings of the test.
            pub plan: serde_json::Value,
            /// Environment record of machine and test object.
            pub environment: serde_json::Value,
            $($(#[$of_field])* pub $field: $type,)*
            /// Error that ended the measurement early, if any; earlier measurements are kept.
            pub failure: Option<String>,
            /// Whether the user stopped it.
            pub interrupted: bool,
        }

        impl $crate::test::TestSummary for $name {
            const KIND: $crate::head::Kind = $kind;
            const SCHEMA_VERSION: u32 = $version;

            fn begun(begun: &$crate::test::Begun) -> Self {
                Self {
                    schema_version: $version,
                    kind: $kind,
                    id: begun.id.clone(),
                    tool_version: begun.tool_version.clone(),
                    created: $crate::time::rfc3339(begun.created_unix_ns),
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

        impl $crate::head::Headed for $name {
            fn head(&self) -> $crate::head::Head<'_> {
                $crate::head::Head {
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
