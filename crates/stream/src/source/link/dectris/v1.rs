//! Stream V1: a message of several frames, JSON and binary, for each image.
use serde_json::json;

use super::super::super::event::Event;
use super::{Messages, Series};
use crate::zmtp::frame_header;

/// The only series of a source.
const SERIES: u64 = 1;

/// Messages of Stream V1 with `header_detail` basic.
pub(super) struct V1;

impl Messages for V1 {
    fn start(&self, series: &Series) -> Vec<Vec<u8>> {
        let bits = series.element.bytes() * 8;
        let compression = if series.is_compressed { "bslz4" } else { "none" };
        let parts = [
            json!({"htype": "dheader-1.0", "series": SERIES, "header_detail": "basic"}),
            json!({
                "x_pixels_in_detector": series.width, "y_pixels_in_detector": series.height,
                "bit_depth_image": bits, "compression": compression, "nimages": series.images, "ntrigger": 1,
                "description": "keepup source",
            }),
        ];
        parts.iter().map(|part| part.to_string().into_bytes()).collect()
    }

    fn put_header(&self, series: &Series, event: &Event, _timestamp_ns: u64, out: &mut Vec<u8>) {
        put_frame(
            out,
            &json!({"htype": "dimage-1.0", "series": SERIES, "frame": event.sequence, "hash": ""}),
        );
        let bits = series.element.bytes() * 8;
        let encoding = if series.is_compressed { format!("bs{bits}-lz4<") } else { "<".to_owned() };
        put_frame(
            out,
            &json!({
                "htype": "dimage_d-1.0", "shape": [series.width, series.height],
                "type": format!("uint{bits}"), "encoding": encoding, "size": event.bytes,
            }),
        );
        out.extend_from_slice(&frame_header(event.bytes, false));
    }

    fn put_trailer(&self, event: &Event, out: &mut Vec<u8>) {
        let times = json!({
            "htype": "dconfig-1.0", "start_time": event.due_ns, "stop_time": event.due_ns, "real_time": 0,
        });
        let text = times.to_string();
        out.extend_from_slice(&frame_header(text.len() as u64, true));
        out.extend_from_slice(text.as_bytes());
    }

    fn end(&self, _series: &Series) -> Vec<u8> {
        json!({"htype": "dseries_end-1.0", "series": SERIES}).to_string().into_bytes()
    }
}

/// Appends a frame that others follow.
fn put_frame(out: &mut Vec<u8>, content: &serde_json::Value) {
    let text = content.to_string();
    out.extend_from_slice(&frame_header(text.len() as u64, false));
    out.extend_from_slice(text.as_bytes());
}
