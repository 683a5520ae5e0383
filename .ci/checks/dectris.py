"""Sends series as a DECTRIS detector does (pyzmq, cbor2, images compressed by HDF5's own filter), and reads with h5py
what keepup recorded of them. The NeXus master is validated by nexusformat and read by nxmx, which dxtbx (DIALS) uses.

usage: dectris.py KEEPUP DIRECTORY CAPTURE

CAPTURE: the package tickit-devices, which has captured messages of a detector.
"""
import datetime
import hashlib
import json
import logging
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile

import cbor2
import h5py
import hdf5plugin
import nexusformat.nexus
import nexusformat.nexus.validate
import numpy
import nxmx
import zmq

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
rng = numpy.random.default_rng(27)
START = datetime.datetime(2026, 11, 26, 9, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
CHANNELS = ["threshold_1", "threshold_2"]
# Fields of a start message (github.com/dectris/documentation, stream_v2) for NXmx.
V2_FIELDS = {
    "arm_date": START, "beam_center_x": 150.5, "beam_center_y": 99.25, "count_time": 0.001,
    "countrate_correction_enabled": True, "detector_description": "DECTRIS EIGER2 Si 1M",
    "detector_serial_number": "E-32-0100", "detector_translation": [150.5 * 75e-6, 99.25 * 75e-6, -0.2],
    "flatfield_enabled": True, "frame_time": 0.002, "incident_energy": 12400.0,
    "incident_wavelength": 12398.419843 / 12400, "pixel_mask_enabled": True, "pixel_size_x": 75e-6,
    "pixel_size_y": 75e-6, "saturation_value": 50649, "sensor_material": "Si", "sensor_thickness": 450e-6,
    "threshold_energy": {"threshold_1": 6200.0, "threshold_2": 9300.0}, "virtual_pixel_interpolation_enabled": False,
    "goniometer": {
        "chi": {"increment": 0.0, "start": 0.0}, "kappa": {"increment": 0.0, "start": 0.0},
        "omega": {"increment": 0.1, "start": 10.0}, "phi": {"increment": 0.0, "start": 5.0},
        "two_theta": {"increment": 0.0, "start": 0.0},
    },
}
# Configuration of Stream V1 (SIMPLON API reference).
V1_FIELDS = {
    "beam_center_x": 150.5, "beam_center_y": 99.25, "bit_depth_readout": 16, "count_time": 0.001,
    "countrate_correction_count_cutoff": 133343, "description": "Dectris Eiger 1M", "detector_distance": 0.2,
    "detector_number": "E-08-0101", "detector_translation": [0.0, 0.0, -0.2],
    "flatfield_correction_applied": True, "frame_time": 0.002,
    "omega_increment": 0.1, "omega_start": 10.0, "phi_increment": 0.0, "phi_start": 5.0, "photon_energy": 12400.0,
    "pixel_mask_applied": False,
    "sensor_material": "Si", "sensor_thickness": 450e-6, "two_theta_increment": 0.0, "two_theta_start": 0.0,
    "wavelength": 12398.419843 / 12400, "x_pixel_size": 75e-6, "y_pixel_size": 75e-6,
}
MAP_FIELDS = ["flatfield", "pixel_mask", "countrate_correction_lookup_table"]
# Messages in the order of the series, with their checksums (crates/sources/tests/samples/dectris/README.md).
CAPTURED = {
    "start": "1748350e34d898d8350c87d48e1fac4591eba7ef83a3fc5be5769732e16ceada",
    "image": "a77e477561451b578c86761e253123ae3fde3555f5f32004c19ccf6cfc6ba789",
    "end": "394c40c49b6ba673b96b81e99747c6865a5b9241724b5e3ec05819660a12e056",
}
DTYPES = {"uint8": ("u1", 64), "uint16": ("<u2", 69), "uint32": ("<u4", 70)}


def encoded(frames, compression):
    """The bytes of each frame, or of each map, as the detector sends them."""
    if compression is None:
        return [frame.tobytes() for frame in frames]
    filters = hdf5plugin.Bitshuffle(cname="lz4") if compression == "bslz4" else hdf5plugin.LZ4()
    with h5py.File("frames", "w", driver="core", backing_store=False) as file:
        data = file.create_dataset("d", data=frames, chunks=(1, *frames.shape[1:]), **filters)
        chunk = lambda index: (index, *[0] * (frames.ndim - 1))
        return [data.id.read_direct_chunk(chunk(index))[1] for index in range(len(frames))]


def typed_array(array, bytes_, tag, compression):
    content = bytes_
    if compression is not None:
        content = cbor2.CBORTag(56500, [compression, array.itemsize, bytes_])
    return cbor2.CBORTag(tag, content)


def image_data(frame, bytes_, tag, compression):
    return cbor2.CBORTag(40, [list(frame.shape), typed_array(frame, bytes_, tag, compression)])


def maps_of(channels):
    """A flat field and a pixel mask for each channel."""
    flatfields = {name: rng.normal(1, 0.1, (200, 300)).astype("<f4") for name in channels}
    masks = {name: rng.integers(0, 2**32, (200, 300), dtype="<u4") for name in channels}
    for flatfield in flatfields.values():
        # Not a number, infinity and the smallest number stay what they are.
        flatfield[0, :4] = [numpy.nan, numpy.inf, -0.0, 1e-45]
    return flatfields, masks


def start_with_maps(start, compression):
    """Adds the maps that header_detail "all" brings to a start message of Stream V2; returns them by their place in
    NXdetector."""
    flatfields, masks = maps_of(CHANNELS)
    table = (numpy.arange(5000) * 1.01).astype("<u4")
    field = lambda maps, tag: {
        name: image_data(map_, encoded(map_[None], compression)[0], tag, compression) for name, map_ in maps.items()
    }
    start["flatfield"], start["pixel_mask"] = field(flatfields, 85), field(masks, 70)
    packed = encoded(table[None], compression)[0]
    start["countrate_correction_lookup_table"] = typed_array(table, packed, 70, compression)
    found = {f"{name}/flatfield": map_ for name, map_ in flatfields.items()}
    found |= {f"{name}/pixel_mask": map_ for name, map_ in masks.items()}
    return found | {f"{name}/countrate_correction_lookup_table": table for name in CHANNELS}


def header_with_maps(frames):
    """The frames of a header with header_detail "all" of Stream V1, and its maps by their place in NXdetector."""
    (flatfield,), (mask,) = (list(maps.values()) for maps in maps_of(["image"]))
    table = rng.normal(1, 0.1, (2, 900)).astype("<f4")
    text = lambda value: json.dumps(value).encode()
    out = [text({**json.loads(frames[0]), "header_detail": "all"}), frames[1]]
    for kind, map_, dtype in [("dflatfield", flatfield, "float32"), ("dpixelmask", mask, "uint32"),
                              ("dcountrate_table", table, "float32")]:
        out += [text({"htype": f"{kind}-1.0", "shape": list(map_.shape[::-1]), "type": dtype}), map_.tobytes()]
    return out + [b"appendix"], {
        "detector/flatfield": flatfield, "detector/pixel_mask": mask,
        "detector/detectorSpecific/countrate_correction_table": table,
    }


def check_maps(name, maps, prefix=""):
    """The master gives every value of the maps that were sent, in NXdetector and as streams."""
    with h5py.File(root / "a" / name / "recording.nxs") as file:
        instrument = file["entry/instrument"]
        found = {
            f"{detector}/{path}"
            for detector in instrument for path in [*MAP_FIELDS, "detectorSpecific/countrate_correction_table"]
            if isinstance(instrument[detector], h5py.Group) and path in instrument[detector]
        }
        assert found == {prefix + path for path in maps}, (name, found)
        for path, sent in maps.items():
            data = instrument[prefix + path]
            assert data.dtype == sent.dtype and data.shape == sent.shape, (name, path, data)
            assert data[...].tobytes() == sent.tobytes(), f"{name}: {path} has other values"
            if path.endswith("lookup_table"):
                stream = file[f"entry/{prefix}{path.split('/')[1]}"]
            else:
                detector, *_, kind = path.split("/")
                stream = file[f"entry/{prefix}{'image' if detector == 'detector' else detector}-{kind}"]
            assert stream["data"][0].tobytes() == sent.tobytes() and len(stream["data"]) == 1, (name, path)
        # With several detectors, there may be too many fields for all of them.
        for detector in {path.split("/")[0] for path in maps if not prefix}:
            assert instrument[detector]["flatfield_applied"][()] == 1, f"{name}: {detector}"
            assert instrument[detector]["pixel_mask_applied"][()] == (detector != "detector"), f"{name}: {detector}"




def series(number, dtype, compression, count, lost):
    """Messages of a series without the images `lost`, and its frames by channel."""
    code, tag = DTYPES[dtype]
    frames = {name: rng.integers(0, 30, (count, 200, 300)).astype(code) for name in CHANNELS}
    chunks = {name: encoded(frames[name], compression) for name in CHANNELS}
    start = {
        "type": "start", **V2_FIELDS, "channels": CHANNELS, "image_dtype": dtype, "image_size_x": 300,
        "image_size_y": 200,
        "number_of_images": count, "series_id": number, "series_unique_id": f"01J{number}",
        "user_data": {"anything": [1, None, {"nested": b"bytes"}]},
    }
    messages = [start]
    for index in (index for index in range(count) if index not in lost):
        messages.append({
            "type": "image", "series_id": number, "series_unique_id": f"01J{number}", "image_id": index,
            "real_time": [100_000, 100_000_000], "series_date": START, "start_time": [index * 200_000, 100_000_000],
            "stop_time": [index * 200_000 + 100_000, 100_000_000], "user_data": "µ",
            "data": {name: image_data(frames[name][0], chunks[name][index], tag, compression) for name in CHANNELS},
        })
    messages.append({"type": "end", "series_id": number, "series_unique_id": f"01J{number}"})
    return messages, frames


def series_v1(number, dtype, compression, count):
    """Messages of a series of Stream V1, and its frames by channel."""
    code, _ = DTYPES[dtype]
    frames = rng.integers(0, 30, (count, 200, 300)).astype(code)
    item = frames.itemsize
    encoding = {None: "<", "lz4": "lz4<", "bslz4": f"bs{8 * item}-lz4<"}[compression]
    chunks = encoded(frames, compression)
    if compression == "lz4":
        # The detector sends the block without the header of HDF5's filter.
        chunks = [chunk[16:] for chunk in chunks]
    config = {**V1_FIELDS, "nimages": count, "ntrigger": 1}
    text = lambda value: json.dumps(value).encode()
    yield [text({"htype": "dheader-1.0", "series": number, "header_detail": "basic"}), text(config)], frames
    for index, chunk in enumerate(chunks):
        head = {"htype": "dimage-1.0", "series": number, "frame": index, "hash": ""}
        data = {"htype": "dimage_d-1.0", "shape": [300, 200], "type": dtype, "encoding": encoding, "size": len(chunk)}
        times = {"htype": "dconfig-1.0", "start_time": index * 2_000_000, "stop_time": index * 2_000_000 + 1_000_000,
                 "real_time": 1_000_000}
        yield [text(head), text(data), chunk, text(times)], frames
    yield [text({"htype": "dseries_end-1.0", "series": number})], frames


class Findings(logging.Handler):
    """What nexusformat finds, by level."""

    def __init__(self):
        super().__init__()
        self.found = {logging.WARNING: [], logging.ERROR: []}

    def emit(self, record):
        if record.levelno in self.found:
            self.found[record.levelno].append(record.getMessage().strip())


def errors(path):
    """Errors of a master by the NXmx definition that comes with nexusformat. Only optional fields may be missing."""
    logger, findings = nexusformat.nexus.validate.logger, Findings()
    handlers, logger.handlers = logger.handlers, [findings]
    nexusformat.nexus.validate.validate_application(path)
    logger.handlers = handlers
    for warning in findings.found[logging.WARNING]:
        assert re.fullmatch("This recommended (field|group) is not in the NeXus file", warning), warning
    return findings.found[logging.ERROR]


def check_errors_are_found(path):
    """The validation finds what is missing; the images stay when one of the two links to them is removed."""
    copy = path.with_name("copy.nxs")
    shutil.copyfile(path, copy)
    with h5py.File(copy, "r+") as file:
        del file["entry/instrument/detector/sensor_thickness"], file["entry/instrument/detector/data"]
        assert len(file["entry/image/data"]) == 60
    assert len(errors(copy)) == 1, errors(copy)
    copy.unlink()


def check_nxmx(path, detectors, rows):
    """Geometry, beam and axes as nxmx reads them; nexusformat finds no error by the definition of NXmx."""
    with h5py.File(path) as file:
        entry, = nxmx.NXmx(file).entries
        instrument, = entry.instruments
        beam, = instrument.beams
        near(beam.incident_wavelength.to("angstrom").magnitude, 12398.419843 / 12400)
        assert sorted(pathlib.PurePath(detector.path).name for detector in instrument.detectors) == sorted(detectors)
        for detector in instrument.detectors:
            near(detector.distance.to("m").magnitude, 0.2)
            near(detector.beam_center_x.magnitude, 150.5)
            near(detector.beam_center_y.magnitude, 99.25)
            near(detector.count_time.to("s").magnitude, 0.001)
            near(detector.frame_time.to("s").magnitude, 0.002)
            near(detector.sensor_thickness.to("um").magnitude, 450)
            assert detector.sensor_material == "Si" and detector.serial_number.startswith("E-")
            assert detector.saturation_value in (50649, 133343)
            module, = detector.modules
            assert list(module.data_size) == [200, 300] and list(module.data_origin) == [0, 0]
            # The first pixel, and from there the pixel in the direct beam: on the beam, at the detector's distance.
            chain = nxmx.get_dependency_chain(module.fast_pixel_direction.depends_on)
            corner = nxmx.get_cumulative_transformation(chain)[0, :3, 3]
            steps = [(150.5, module.fast_pixel_direction), (99.25, module.slow_pixel_direction)]
            near(corner + sum(count * axis[0].to("mm").magnitude * axis.vector for count, axis in steps), [0, 0, 200])
            assert detector.depends_on.path == chain[0].path
        sample, = entry.samples
        axes = nxmx.get_rotation_axes(nxmx.get_dependency_chain(sample.depends_on))
        turning = list(axes.names[axes.is_scan_axis])
        assert turning == ["omega"] and axes.names[-1] == "omega" and axes.names[0] == "phi", axes
        omega = sample.transformations[0].axes["omega"]
        assert list(omega.vector) == [-1, 0, 0]
        near(omega[()].to("degree").magnitude, 10 + 0.1 * numpy.arange(rows))
        near(axes.angles[0], 5)
        assert len(entry.data[0][entry.data[0].signal]) == rows and sample.name == "lysozyme"
        assert entry.end_time_estimated is not None and entry.source.name == "unknown"
        for detector, stream in detectors.items():
            data = file[f"entry/instrument/{detector}/data"]
            assert data == file[f"entry/{stream}/data"] and h5py.h5o.get_info(data.id).rc == 2, "not the same dataset"
    with nexusformat.nexus.nxload(str(path)) as root:
        assert root["entry/definition"] == "NXmx" and root["entry/instrument"].nxclass == "NXinstrument"
        for detector in detectors:
            assert root[f"entry/instrument/{detector}/beam_center_x"] == 150.5
    assert not errors(path), errors(path)


def near(found, expected):
    assert numpy.allclose(found, expected, rtol=1e-9, atol=1e-9), (found, expected)


def check_v1(name, frames):
    """The master gives the frames and the times between them."""
    with h5py.File(root / "a" / name / "recording.nxs") as file:
        entry = file["entry"]
        metadata = {item.attrs["key"].decode(): item[()].decode() for item in entry["metadata"].values()}
        assert metadata["beam_center_x"] == "150.5" and metadata["omega_increment"] == "0.1", metadata
        group = entry["image"]
        valid = group["valid"][...].astype(bool)
        assert (group["data"][...][valid] == frames).all(), f"{name}: other pixels"
        assert (numpy.diff(group["timestamp"][...][valid].astype(int)) == 2_000_000).all(), f"{name}: other times"


def send(socket, messages):
    for message in messages:
        if isinstance(message, list):
            socket.send_multipart(message)
        elif isinstance(message, bytes):
            socket.send(message)
        else:
            # Detectors mark their messages as CBOR.
            socket.send(cbor2.dumps(cbor2.CBORTag(55799, message), datetime_as_timestamp=False))


def captured(package):
    """Messages of an EIGER2 16M as they were captured, and the pixels of the image."""
    with zipfile.ZipFile(package) as file:
        messages = [file.read(f"tickit_devices/eiger/data/stream2/{name}.cbor") for name in CAPTURED]
    assert [hashlib.sha256(message).hexdigest() for message in messages] == list(CAPTURED.values())
    shape, elements = cbor2.loads(messages[1])["data"]["threshold_1"].value
    algorithm, _, chunk = elements.value.value
    assert (elements.tag, algorithm) == (69, "bslz4"), elements
    with h5py.File("captured", "w", driver="core", backing_store=False) as file:
        filters = hdf5plugin.Bitshuffle(cname="lz4")
        data = file.create_dataset("d", tuple(shape), "<u2", chunks=tuple(shape), **filters)
        data.id.write_direct_chunk((0, 0), chunk)
        return messages, data[...]


def record(context, name, *detectors, options=()):
    """Records what each detector sends; returns the exit code, the account and the addresses of the detectors."""
    command = [keepup, "record", "--name", name, "--json", "--meta", "sample=lysozyme", *options]
    sockets, addresses = [context.socket(zmq.PUSH) for _ in detectors], []
    for socket in sockets:
        # As many as the detector keeps; then it waits.
        socket.sndhwm = 20
        addresses.append(f"127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}")
        command += ["--from", f"zmq://{addresses[-1]}"]
    volumes = [root / "a", root / "b"]
    recorder = subprocess.Popen(
        command + [word for volume in volumes for word in ("--volume", volume)], stdout=subprocess.PIPE, text=True
    )
    senders = [threading.Thread(target=send, args=pair, daemon=True) for pair in zip(sockets, detectors)]
    for sender in senders:
        sender.start()
    out, _ = recorder.communicate(timeout=60)
    for sender, socket in zip(senders, sockets):
        sender.join(timeout=10)
        socket.close(linger=0)
    # With --series, there is one account for each run: this is the last one.
    return recorder.returncode, json.loads("{" + f"\n{out}".rpartition("\n{")[2]), addresses


def check(name, frames, count, lost):
    """The master over both volumes gives the frames that were sent; the others are marked as missing."""
    there = [index for index in range(count) if index not in lost]
    with h5py.File(root / "a" / name / "recording.nxs") as file:
        entry = file["entry"]
        metadata = {item.attrs["key"].decode(): item[()].decode() for item in entry["metadata"].values()}
        assert float(metadata["beam_center_x"]) == 150.5 and metadata["goniometer/omega/increment"] == "0.1", metadata
        assert "pixel_mask" not in metadata and metadata["arm_date"].startswith("2026-11-26T09:30"), metadata
        for channel in CHANNELS:
            group = entry[channel]
            data, valid = group["data"][...], group["valid"][...].astype(bool)
            sequence = group["sequence"][...]
            assert list(sequence[valid]) == there, f"{name}: other images"
            assert (data[valid] == frames[channel][there]).all(), f"{name}: other pixels"
            times = group["timestamp"][...][valid]
            base = int(START.timestamp()) * 10**9
            assert list(times) == [base + index * 2_000_000 for index in there], f"{name}: other times"


(root / "a").mkdir(parents=True, exist_ok=True)
(root / "b").mkdir(parents=True, exist_ok=True)
context = zmq.Context()
begin = time.monotonic()
# With maps (header_detail "all"), compressed as named, and without.
CASES = [
    ("plain", "uint16", None, set(), "none"),
    ("bitshuffled", "uint32", "bslz4", set(), None),
    ("lz4", "uint8", "lz4", set(), "lz4"),
    ("gaps", "uint16", "bslz4", {3, 4, 30, 59}, "bslz4"),
]
for number, (name, dtype, compression, lost, packed) in enumerate(CASES):
    messages, frames = series(number, dtype, compression, 60, lost)
    maps = start_with_maps(messages[0], None if packed == "none" else packed) if packed else {}
    streams = len({path if path.split("/")[1] != "countrate_correction_lookup_table" else "table" for path in maps})
    code, account, _ = record(context, name, messages)
    assert code == (1 if lost else 0), (name, code, account)
    received = account["received"]["events"]
    assert received == account["durable"]["events"] == 2 * (60 - len(lost)) + streams, (name, account)
    assert sum(stream["gap_events"].get("sequence_gap", 0) for stream in account["ledger"]["streams"].values()) \
        == 2 * len(lost), (name, account["ledger"])
    assert account["trouble"] == [] and account["whole"] == (not lost), (name, account)
    verified = subprocess.run([keepup, "verify", root / "a" / name, "--json"], stdout=subprocess.PIPE, check=False)
    assert json.loads(verified.stdout)["fault_count"] == 0, verified.stdout
    check(name, frames, 60, lost)
    check_nxmx(root / "a" / name / "recording.nxs", {name: name for name in CHANNELS}, 60)
    check_maps(name, maps)
messages, pixels = captured(sys.argv[3])
code, account, _ = record(context, "captured", messages)
assert code == 0 and account["durable"]["events"] == 1 and account["whole"], (code, account)
with h5py.File(root / "a" / "captured" / "recording.nxs") as file:
    assert (file["entry/threshold_1/data"][0] == pixels).all() and pixels.any()
    near(file["entry/instrument/detector/beam_center_x"][()], 2049.3840906675064)
# Images that come twice or late change nothing for the others.
messages, frames = series(11, "uint16", "bslz4", 60, set())
images = messages[1:-1]
code, account, _ = record(context, "late", [
    messages[0], *images[:5], images[4], images[6], images[5], images[2], *images[7:], messages[-1],
])
assert code == 0 and account["durable"]["events"] == 2 * 60 and account["whole"], (code, account)
check("late", frames, 60, set())
CASES_V1 = [("v1-plain", "uint16", None, True), ("v1-lz4", "uint32", "lz4", False),
            ("v1-bitshuffled", "uint8", "bslz4", True)]
for number, (name, dtype, compression, has_maps) in enumerate(CASES_V1):
    messages, (frames, *_) = zip(*series_v1(number, dtype, compression, 60))
    header, maps = header_with_maps(messages[0]) if has_maps else (messages[0], {})
    code, account, _ = record(context, name, [header, *messages[1:]])
    assert code == 0 and account["durable"]["events"] == 60 + len(maps), (name, code, account)
    assert account["trouble"] == [] and account["incidents"]["total"] == 0, (name, account)
    check_v1(name, frames)
    check_maps(name, maps)
    check_nxmx(root / "a" / name / "recording.nxs", {"detector": "image"}, 60)
check_errors_are_found(root / "a" / CASES_V1[0][0] / "recording.nxs")
# Malformed fields are left out, and without the pixel size there is no NXmx; the images are recorded all the same.
for name, bad in [("bad-fields", {"incident_wavelength": float("inf"), "sensor_thickness": "thick",
                                  "detector_translation": [0.2], "goniometer": {"omega": {"start": float("nan")}}}),
                  ("bad-pixel", {"pixel_size_x": -75e-6})]:
    messages, frames = series(7, "uint16", "bslz4", 60, set())
    messages[0].update(bad)
    code, account, _ = record(context, name, messages)
    assert code == 0 and account["durable"]["events"] == 2 * 60, (name, code, account)
    with h5py.File(root / "a" / name / "recording.nxs") as file:
        assert (file["entry/threshold_2/data"][...] == frames["threshold_2"]).all()
        assert ("definition" in file["entry"]) == ("instrument" in file["entry"]) == (name == "bad-fields")
        if name == "bad-fields":
            detector = file["entry/instrument/threshold_1"]
            assert "beam_center_x" in detector and not {"sensor_thickness", "distance", "depends_on"} & set(detector)
            assert file["entry/sample/depends_on"][()] == b"." and "transformations" not in file["entry/sample"]
            # From the energy.
            near(file["entry/instrument/beam/incident_wavelength"][()], 12398.419843 / 12400)
# Two detectors with different protocols in one recording, the first one with maps.
both = [series(8, "uint16", "bslz4", 60, set())[0], [message for message, _ in series_v1(9, "uint16", None, 60)]]
maps = start_with_maps(both[0][0], None)
code, account, addresses = record(context, "two", *both)
assert code == 0 and account["durable"]["events"] == 3 * 60 + 5, (code, account)
streams = [f"{addresses[0]}-{name}" for name in CHANNELS] + [f"{addresses[1]}-image"]
check_nxmx(root / "a" / "two" / "recording.nxs", {name: name for name in streams}, 60)
check_maps("two", maps, f"{addresses[0]}-")
# Maps that do not fit are left out; the images are recorded all the same. With this pool, an event has 2 MiB at most.
messages, frames = series(10, "uint16", "bslz4", 60, set())
maps = start_with_maps(messages[0], None)
large = numpy.ones((1500, 1000), "<f4")
messages[0]["flatfield"]["threshold_1"] = image_data(large, large.tobytes(), 85, None)
messages[0]["flatfield"]["threshold_2"] = image_data(large[0:5], b"short", 85, None)
code, account, _ = record(context, "left-out", messages, options=["--pool", "4MiB", "--block", "64KiB"])
assert code == 0 and account["durable"]["events"] == 2 * 60 + 3, (code, account)
remarks = account["incidents"]["listed"]
assert len(remarks) == 2 and "6000000 bytes, limit" in remarks[0] and "do not match" in remarks[1], account
check("left-out", frames, 60, set())
check_maps("left-out", {path: map_ for path, map_ in maps.items() if not path.endswith("flatfield")})
# A series of its own for each run, with its own maps. They are larger than the images.
runs = [series(number, "uint8", "bslz4", 20, set())[0] for number in (20, 21, 22)]
maps = [start_with_maps(messages[0], None) for messages in runs[:2]]
code, account, _ = record(context, "run", sum(runs, []), options=["--series", "3"])
assert code == 0, (code, account)
names = sorted((path.name for path in (root / "a").glob("run-*")), key=lambda name: int(name.split("-")[1]))
for name, found in zip(names, [*maps, {}], strict=True):
    check_maps(name, found)
print(f"{len(CASES) + len(CASES_V1)} series of a DECTRIS detector recorded in {time.monotonic() - begin:.1f} s, "
      "and two detectors at once; their masters are NXmx with all maps")
