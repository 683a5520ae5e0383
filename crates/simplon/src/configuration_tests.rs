//! Configurations of detectors that answer well, and of others.
use super::*;
use crate::testing::{Answer, Server, of_value};

fn read(script: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static) -> (Configuration, Value) {
    let server = Server::start(move |_, path| script(path));
    let configuration = server.connect().unwrap().configuration(Some(17), &|| false).unwrap();
    let document = serde_json::from_slice(&configuration.document).unwrap();
    (configuration, document)
}

#[test]
fn answers_are_recorded_unchanged() {
    let (configuration, document) = read(|_| None);
    assert_eq!((configuration.parameters, &configuration.left_out[..]), (4, &[][..]));
    // Every digit, though a 64-bit float has fewer.
    let text = String::from_utf8(configuration.document).unwrap();
    assert!(text.contains("\"threshold/1/energy\":{\"value\": 6200.123456789012345,"), "{text}");
    assert_eq!((&document["format"], &document["series"]), (&json!(1), &json!(17)));
    assert_eq!(document["detector"]["version"], "1.8.0");
    assert_eq!(document["detector"]["config"]["nimages"]["value"], 10);
    assert_eq!(document["detector"]["status"]["state"]["value"], "idle");
    assert_eq!(document["stream"]["config"]["mode"]["value"], "enabled");
    assert_eq!(document["left_out"], json!({}));
}

#[test]
fn a_list_of_names_may_stand_alone() {
    let (configuration, _) = read(|path| {
        path.ends_with("detector/api/1.8.0/config/keys")
            .then(|| Answer::Json("[\"keys\", \"nimages\"]".into()))
    });
    assert_eq!(configuration.parameters, 3);
}

#[test]
fn parameters_that_cannot_be_read_are_listed() {
    let names = "[\"nimages\", \"gone\", \"long\", \"broken\", \"flatfield\", \"threshold/1/pixel_mask\", \
                 \"../x\", \"a//b\", \"a?b\", \"é\", 7]";
    let server = Server::start(move |_, path| match path.strip_prefix("/detector/api/1.8.0/config/") {
        Some("keys") => Some(of_value(names)),
        Some("long") => Some(Answer::Endless),
        Some("broken") => Some(Answer::Json("{\"value\": 1} x".into())),
        _ => None,
    });
    let configuration = server.connect().unwrap().configuration(None, &|| false).unwrap();
    let document: Value = serde_json::from_slice(&configuration.document).unwrap();
    assert_eq!(document["detector"]["config"].as_object().unwrap().len(), 1);
    assert_eq!(document["series"], Value::Null);
    let left_out = document["left_out"].as_object().unwrap();
    let names: Vec<_> = left_out.keys().map(|name| name.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["broken", "flatfield", "gone", "long", "pixel_mask"]);
    assert_eq!(left_out["detector/config/gone"], "HTTP status 404: Parameter does not exist");
    assert_eq!(configuration.left_out.len(), 3 + 5, "{configuration:#?}");
    // Names that are none and arrays are not requested.
    let requests = server.requests.lock().unwrap();
    assert!(requests.iter().all(|request| !request.contains("..") && !request.contains("pixel_mask")));
}

#[test]
fn the_document_is_limited() {
    let names: Vec<_> = (0..40).map(|index| format!("\"p{index}\"")).collect();
    let names = format!("[{}]", names.join(","));
    let large = of_value(&format!("\"{}\"", "x".repeat(200 << 10)));
    let (configuration, document) =
        read(move |path| match path.strip_prefix("/detector/api/1.8.0/config/") {
            Some("keys") => Some(of_value(&names)),
            Some(name) if name.starts_with('p') => Some(large.clone()),
            _ => None,
        });
    assert!(configuration.document.len() < DOCUMENT_BYTES_MAX + (64 << 10));
    let found = document["detector"]["config"].as_object().unwrap().len();
    assert_eq!((found, configuration.left_out.len()), (20, 20));
    // Small ones behind them have room.
    assert_eq!(document["stream"]["config"]["mode"]["value"], "enabled");
}

#[test]
fn a_part_with_too_many_parameters_is_left_out() {
    let names: Vec<_> = (0..=PARAMETERS_MAX).map(|index| format!("\"p{index}\"")).collect();
    let names = format!("[{}]", names.join(","));
    let (configuration, document) =
        read(move |path| path.ends_with("detector/api/1.8.0/config/keys").then(|| of_value(&names)));
    assert_eq!(document["left_out"]["detector/config"], "1025 parameters, at most 1024 are possible");
    assert_eq!(configuration.parameters, 2);
}

#[test]
fn a_detector_without_answers_has_no_configuration() {
    let server = Server::start(|_, path| path.ends_with("keys").then(|| Answer::Status(500, String::new())));
    let error = server.connect().unwrap().configuration(None, &|| false).unwrap_err();
    assert!(error.to_string().ends_with("detector/config: HTTP status 500"), "{error}");
    let server = Server::start(|_, _| None);
    let error = server.connect().unwrap().configuration(None, &|| true).unwrap_err();
    assert!(error.to_string().ends_with("the recording was stopped"), "{error}");
}
