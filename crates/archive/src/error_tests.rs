//! A server's answer becomes one short line, with a hint for refused credentials.
use super::*;

fn generic(text: &str) -> object_store::Error {
    object_store::Error::Generic { store: "S3", source: text.to_owned().into() }
}

#[test]
fn code_and_message_of_the_server_are_quoted() {
    let xml = "Server returned non-2xx status code: 503 Service Unavailable: <Error><Code>SlowDown</Code>\
               <Message>Reduce your\nrequest rate</Message></Error>";
    let cause = cause(&generic(xml));
    assert_eq!(cause.to_string(), "the server answers SlowDown: Reduce your request rate");
    assert_eq!(cause.hint(), None);
}

#[test]
fn a_status_without_a_body_is_quoted() {
    let found = cause(&generic("Server returned non-2xx status code: 500 Internal Server Error: "));
    assert_eq!(found.to_string(), "the server answers 500 Internal Server Error");
    assert_eq!(cause(&generic("connection refused")).to_string(), "connection refused");
}

#[test]
fn refused_credentials_have_a_hint() {
    let expired = generic("status code: 400 Bad Request: <Code>ExpiredToken</Code>");
    assert!(is_denied(&expired) && cause(&expired).hint().unwrap().contains("AWS_SESSION_TOKEN"));
    let source = "403".to_owned().into();
    assert!(is_denied(&object_store::Error::PermissionDenied { path: String::new(), source }));
    assert!(!is_denied(&generic("status code: 503")));
    let source = "<Code>SignatureDoesNotMatch</Code>".to_owned().into();
    let changed = object_store::Error::PermissionDenied { path: String::new(), source };
    assert!(is_denied(&changed) && has_wrong_signature(&changed) && !has_wrong_signature(&expired));
}

#[test]
fn a_wrong_time_is_no_matter_of_credentials() {
    for code in TIME_CODES {
        let source = format!("403: <Code>{code}</Code>").into();
        let skewed = object_store::Error::PermissionDenied { path: String::new(), source };
        assert!(has_wrong_time(&skewed) && !is_final(&skewed), "{code}");
        assert!(cause(&skewed).hint().unwrap().starts_with("timedatectl"), "{code}");
    }
    let expired = generic("status code: 400 Bad Request: <Code>ExpiredToken</Code>");
    assert!(is_final(&expired) && !has_wrong_time(&expired));
}

#[test]
fn a_wrong_region_has_a_hint() {
    let hint = |text: &str| cause(&generic(text)).hint().map(|hint| hint.into_owned());
    let message = "<Code>AuthorizationHeaderMalformed</Code><Message>expecting 'eu-west-1'</Message>";
    assert_eq!(hint(message).unwrap(), "AWS_REGION=eu-west-1");
    let hostile = message.replace("eu-west-1", "$(id)");
    let moved =
        "Received redirect without LOCATION, this normally indicates an incorrectly configured region";
    for text in [hostile.as_str(), moved] {
        assert_eq!(hint(text).unwrap(), "AWS_REGION=REGION, that of the bucket");
    }
}

#[test]
fn an_object_is_absent_only_in_a_bucket_that_exists() {
    let answer = |code: &str| object_store::Error::NotFound {
        path: "a".to_owned(),
        source: format!("404 Not Found: <Code>{code}</Code>").into(),
    };
    assert!(is_absent(&answer("NoSuchKey")) && !is_absent(&answer("NoSuchBucket")));
}

#[test]
fn long_answers_are_cut() {
    let cause = cause(&generic(&format!("<Code>{}</Code>", "x".repeat(1 << 20))));
    assert_eq!(cause.to_string().chars().count(), QUOTED_MAX);
}

#[test]
fn a_refused_checksum_has_a_hint() {
    let hint = |text: &str| cause(&generic(text)).hint().map(|hint| hint.into_owned());
    let refused = "<Code>InvalidArgument</Code><Message>Invalid checksum provided.</Message>";
    assert!(hint(refused).unwrap().starts_with("AWS_CHECKSUM_ALGORITHM=sha256"));
    let all = "<Code>InvalidArgument</Code><Message>Unsupported header 'x-amz-checksum-sha256'.</Message>";
    assert!(hint(all).unwrap().starts_with("AWS_CHECKSUM_ALGORITHM=none"));
    let other = "<Code>InvalidArgument</Code><Message>Invalid part number.</Message>";
    let corrupt = "<Code>BadDigest</Code><Message>The CRC64NVME checksum did not match.</Message>";
    assert_eq!((hint(other), hint(corrupt)), (None, None));
}

#[test]
fn a_refused_checksum_is_recognised_by_code_and_text() {
    let answer =
        |code: &str, text: &str| format!("<Error><Code>{code}</Code><Message>{text}</Message></Error>");
    assert!(is_checksum_refused(&answer("InvalidRequest", "Checksum Type mismatch occurred")));
    assert!(!is_checksum_refused(&answer("InvalidRequest", "The bucket is gone")));
    assert!(!is_checksum_refused(&answer("AccessDenied", "Checksum Type mismatch occurred")));
}
