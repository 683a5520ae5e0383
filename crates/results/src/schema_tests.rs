//! The committed JSON schema of `result.json` is the one that the types generate.

use std::path::Path;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

use crate::campaign::CampaignSummary;
use crate::checksum::{self, Document};
use crate::compare::CompareSummary;
use crate::disk::DiskSummary;
use crate::doctor::DoctorSummary;
use crate::example::fit;
use crate::fleet_doctor::FleetDoctorSummary;
use crate::fleet_qualify::FleetQualifySummary;
use crate::net::NetSummary;
use crate::predict::PredictSummary;
use crate::record::RecordSummary;
use crate::register::RegisterSummary;
use crate::replay::ReplaySummary;
use crate::soak::SoakSummary;
use crate::summary::ResultSummary;

/// JSON schema (draft 2020-12) of what is written: a figure that was not measured is present and null.
fn schema_of<T: JsonSchema>() -> serde_json::Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().to_value()
}

/// The same for the document of a result, which has a checksum. Earlier versions wrote none.
fn document_schema_of<T: JsonSchema>() -> serde_json::Value {
    let mut schema = schema_of::<T>();
    schema["properties"][checksum::FIELD] = serde_json::json!({
        "description": "SHA-256 of the content without this field; `keepup report` checks it.",
        "type": "string",
        "pattern": "^sha256:[0-9a-f]{64}$",
    });
    schema
}

fn result_schema() -> serde_json::Value {
    document_schema_of::<ResultSummary>()
}

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    committed("result.schema.json", &result_schema());
    committed("campaign.schema.json", &document_schema_of::<CampaignSummary>());
    committed("disk.schema.json", &document_schema_of::<DiskSummary>());
    committed("net.schema.json", &document_schema_of::<NetSummary>());
    committed("doctor.schema.json", &schema_of::<DoctorSummary>());
    committed("fleet-doctor.schema.json", &schema_of::<FleetDoctorSummary>());
    committed("qualify-fleet.schema.json", &document_schema_of::<FleetQualifySummary>());
    committed("record.schema.json", &document_schema_of::<RecordSummary>());
    committed("register.schema.json", &document_schema_of::<RegisterSummary>());
    committed("replay.schema.json", &document_schema_of::<ReplaySummary>());
    committed("compare.schema.json", &document_schema_of::<CompareSummary>());
    committed("predict.schema.json", &document_schema_of::<PredictSummary>());
    committed("soak.schema.json", &document_schema_of::<SoakSummary>());
}

fn committed(name: &str, schema: &serde_json::Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name);
    let wanted = format!("{}\n", serde_json::to_string_pretty(schema).unwrap());
    if std::env::var_os("KEEPUP_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/schema/{name} is not what the types say; if the change is meant: \
         KEEPUP_BLESS=1 cargo test -p keepup-results"
    );
}

#[test]
fn the_schema_names_every_field_that_is_written() {
    let schema = result_schema();
    let summary = serde_json::to_value(fit()).unwrap();
    let written: Vec<_> = summary.as_object().unwrap().keys().collect();
    let mut required: Vec<_> =
        schema["required"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
    required.sort_unstable();
    assert_eq!(written, required);
    let document = Document::value(&fit()).unwrap();
    let properties = schema["properties"].as_object().unwrap();
    assert!(document.as_object().unwrap().keys().all(|field| properties.contains_key(field)));
    assert_eq!(schema["additionalProperties"], serde_json::json!(false));
    assert_eq!(schema["$defs"]["Verdict"]["oneOf"][1]["const"], "NOT FIT");
}
