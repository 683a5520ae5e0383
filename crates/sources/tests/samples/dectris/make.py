"""Writes the samples of this directory: messages with the fields, the order and the encoding of captured ones (see
README.md), with smaller images of known content. Encoded by cbor2, compressed by HDF5's own filters.

usage: make.py    (needs cbor2, h5py, hdf5plugin, numpy)
"""
import pathlib

import cbor2
import h5py
import hdf5plugin
import numpy

here = pathlib.Path(__file__).parent
Tag = cbor2.CBORTag
DATE = Tag(0, "2023-02-10T15:49:05.281+01:00")
CLOCK = 50_000_000


def chunk(frame, filters):
    with h5py.File("frame", "w", driver="core", backing_store=False) as file:
        data = file.create_dataset("d", data=frame, chunks=frame.shape, **filters)
        return data.id.read_direct_chunk((0, 0))[1]


def array(frame, tag, compression):
    filters = hdf5plugin.Bitshuffle(cname="lz4") if compression == "bslz4" else hdf5plugin.LZ4()
    size = frame.itemsize if compression == "bslz4" else 0
    return Tag(40, [list(frame.shape), Tag(tag, Tag(56500, [compression, size, chunk(frame, filters)]))])


def write(name, message):
    (here / f"{name}.cbor").write_bytes(cbor2.dumps(Tag(55799, message)))


def frame(number, channel, dtype, height=514, width=16):
    """Pixels of an image: its number, and one pixel that differs in each line."""
    pixels = numpy.full((height, width), number + 10 * channel, dtype)
    pixels[:, 0] = numpy.arange(height) % 251
    return pixels


def series(name, channels, dtype, tag, compression, images, extra):
    ids = {"series_id": 15614, "series_unique_id": "01HBV3JPF9T4ZDPADX6EMK6XMZ"}
    height, width = frame(0, 0, dtype).shape
    write(f"{name}-start", {
        "type": "start", **ids, "arm_date": Tag(0, "2023-10-03T17:47:48.329+02:00"),
        "beam_center_x": 2049.3840906675064, "beam_center_y": 2163.621048575148, "channels": channels,
        "count_time": 0.004317472232502031, "countrate_correction_enabled": True,
        "detector_description": "Dectris EIGER2 Si 16M", "detector_serial_number": "E-32-0117",
        "detector_translation": [0.15370380680006296, 0.1622715786431361, -0.23715919962215962],
        "flatfield_enabled": True, "frame_time": 0.004317572232502031,
        "goniometer": {axis: {"increment": step, "start": start} for axis, step, start in
                       [("chi", 0.0, 30.0), ("omega", 0.1, 0.0), ("phi", 0.0, 0.0)]},
        **extra, "image_size_x": width, "image_size_y": height, "incident_energy": 13500.299829398293,
        "incident_wavelength": 0.918381073013, "number_of_images": images, "pixel_mask_enabled": True,
        "pixel_size_x": 7.5e-05, "pixel_size_y": 7.5e-05, "saturation_value": 21517, "sensor_material": "Si",
        "sensor_thickness": 0.00045, "threshold_energy": {"threshold_1": 6750.15, "threshold_2": 18900.42},
        "virtual_pixel_interpolation_enabled": True,
    })
    for number in range(images):
        write(f"{name}-image-{number}", {
            "type": "image", **ids, "image_id": number, "real_time": [999_995, CLOCK], "series_date": DATE,
            "start_time": [number * CLOCK // 50, CLOCK], "stop_time": [number * CLOCK // 50 + 999_995, CLOCK],
            "user_data": [1, "\N{BLUE HEART}"],
            "data": {name: array(frame(number, at, dtype), tag, compression) for at, name in enumerate(channels)},
        })
    write(f"{name}-end", {"type": "end", **ids})


# As the capture of Diamond Light Source: one channel of an EIGER2 16M, no image_dtype in the start message.
series("eiger2", ["threshold_1"], "<u2", 69, "bslz4", 2, {})
# As the captures of DECTRIS: two thresholds and their difference.
series("difference", ["threshold_1", "threshold_2", "difference"], "u1", 64, "lz4", 2, {"image_dtype": "uint8"})
