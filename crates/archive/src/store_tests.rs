//! Addresses are checked before a request is sent.
use keepup_error::Diagnostic as _;

use super::*;

#[test]
fn addresses_are_parsed_and_extended() {
    for (text, below) in [
        ("s3://bucket", "s3://bucket/run 1"),
        ("s3://bucket/a/b/", "s3://bucket/a/b/run 1"),
        ("gs://bucket/a", "gs://bucket/a/run 1"),
        ("file:///tmp/a", "file:///tmp/a/run 1"),
    ] {
        let found = Location::parse(text).unwrap().below("run 1").to_string();
        assert_eq!(found.replace("%20", " "), below);
    }
}

#[test]
fn other_addresses_are_refused() {
    for (text, wanted) in [
        ("s3:///a", "no bucket"),
        ("file://host/a", "names a host"),
        ("http://host/a", "the scheme must be"),
        ("s3://bucket/a?b=c", "query"),
        ("s3://127.0.0.1:9000/bucket/a", "it has a port"),
        ("gs://host:80", "it has a port"),
        ("s3://bucket/a//b", ""),
    ] {
        let refused = Location::parse(text).unwrap_err().to_string();
        assert!(refused.contains(wanted), "{refused}");
    }
}

#[test]
fn a_secret_in_an_address_is_not_repeated() {
    let refused = Location::parse("s3://key:secret@bucket/a").unwrap_err();
    assert!(!refused.to_string().contains("secret"), "{refused}");
    assert!(refused.hint().is_some());
}

#[test]
fn a_directory_that_does_not_exist_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let location = Location::parse(&format!("file://{}/none", place.path().display())).unwrap();
    let refused = Store::open(&location, None).err().unwrap().to_string();
    assert!(refused.ends_with("the directory does not exist"), "{refused}");
}

#[test]
fn objects_are_written_and_read() {
    let place = tempfile::tempdir().unwrap();
    let location = Location::parse(&format!("file://{}", place.path().display())).unwrap();
    let store = Store::open(&location, None).unwrap();
    assert!(store.head("a/b").unwrap().is_none() && store.get("a/b", 9).unwrap().is_none());
    store.put("a/b", Bytes::from_static(b"text")).unwrap();
    assert_eq!(store.head("a/b").unwrap().unwrap().size, 4);
    assert_eq!(store.get("a/b", 4).unwrap().unwrap().unwrap(), b"text");
    assert!(store.get("a/b", 3).unwrap().unwrap().unwrap_err().contains("longer than 3 bytes"));
}

/// Checksum, whether the payload is unsigned, and whether HTTP without TLS is permitted.
fn s3(settings: &[(AmazonS3ConfigKey, &str)], environment: &[&str]) -> (String, String, bool) {
    let with = |builder: AmazonS3Builder, (key, value): &(AmazonS3ConfigKey, &str)| {
        builder.with_config(*key, *value)
    };
    let builder = settings.iter().fold(AmazonS3Builder::new(), with);
    let builder = s3_settings(builder, &|name| environment.contains(&name));
    let of = |key| builder.get_config_value(&key).unwrap_or_default();
    let allow_http = of(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp)) == "true";
    (of(AmazonS3ConfigKey::Checksum), of(AmazonS3ConfigKey::UnsignedPayload), allow_http)
}

#[test]
fn payloads_are_signed_where_tls_does_not_protect_them() {
    let crc = || "crc64nvme".to_owned();
    let (http, https) = ("http://127.0.0.1:9000", "https://s3.example.org");
    let (endpoint, of_s3) = (AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint);
    assert_eq!(s3(&[], &[]), (crc(), "true".to_owned(), false));
    assert_eq!(s3(&[(endpoint, https)], &[]), (crc(), "true".to_owned(), false));
    assert_eq!(s3(&[(endpoint, http)], &[]), (crc(), "false".to_owned(), true));
    assert_eq!(s3(&[(endpoint, https), (of_s3, http)], &[]), (crc(), "false".to_owned(), true));
    assert_eq!(s3(&[(endpoint, http), (of_s3, https)], &[]), (crc(), "true".to_owned(), false));
}

#[test]
fn the_environment_selects_another_checksum_and_signature() {
    let sha256 = (AmazonS3ConfigKey::Checksum, "sha256");
    assert_eq!(s3(&[sha256], &[]), ("sha256".to_owned(), "true".to_owned(), false));
    assert_eq!(s3(&[], &[CHECKSUM_VARIABLE]).0, "", "AWS_CHECKSUM_ALGORITHM=none");
    let unsigned = (AmazonS3ConfigKey::UnsignedPayload, "true");
    let http = (AmazonS3ConfigKey::Endpoint, "http://127.0.0.1:9000");
    assert_eq!(s3(&[unsigned, http], &["AWS_UNSIGNED_PAYLOAD"]).1, "true");
    let signed = (AmazonS3ConfigKey::UnsignedPayload, "false");
    assert_eq!(s3(&[signed], &["AWS_UNSIGNED_PAYLOAD"]).1, "false");
}

/// Names of recordings with a meaning in a URL, a key, a pattern or a shell.
const NAMES: [&str; 18] = [
    "run", "50%bias", "gain%%2", "%2e%2e", "a%2Fb", "run~1", "a[1]", "a#b", "a?b", "Brühl", "α β", "x'y\"z",
    "a+b&c", "{a}|^`\\", "$(id)", "it's;a", "$HOME!*", "<b>&amp;",
];

#[test]
fn the_printed_address_of_an_archive_leads_to_the_same_key() {
    for home in ["s3://bucket", "s3://bucket/my%20runs/it's $(id)", "gs://bucket/p", "az://container/p"] {
        let home = Location::parse(home).unwrap();
        for name in NAMES {
            let address = home.below(name).to_string();
            let base = ObjectPath::from_url_path(home.url.path()).unwrap();
            let key = literal(&base, name).unwrap();
            let printed = Location::parse(&address).unwrap();
            assert_eq!(ObjectPath::from_url_path(printed.url.path()).unwrap(), key, "{address}");
            assert_eq!(key.filename(), Some(name), "the key has the name as it is");
            assert_eq!(printed, home.below(name), "one spelling");
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/%".contains(c);
            assert!(address.chars().all(is_plain), "a shell reads {address} as it is");
        }
    }
}

#[test]
fn archives_of_earlier_versions_have_encoded_names() {
    let location = |name: &str| Location::parse("s3://bucket/p").unwrap().below(name);
    assert_eq!(location("run").earlier(), None);
    let earlier = location("50%bias").earlier().unwrap();
    let key = ObjectPath::from_url_path(earlier.url.path()).unwrap();
    assert_eq!(key, ObjectPath::from("p").join("50%bias"), "the key that `join` makes");
}
