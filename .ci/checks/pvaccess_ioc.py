"""A soft IOC that serves an NTNDArray with EPICS's older pvAccess server (QSRV 1 on pvAccessCPP). It sends large arrays
in segments and refers to types by numbers, which pvxs does not. Posts an image for each line on stdin.

usage: pvaccess_ioc.py PORT ROWS COLUMNS FRAMES
"""
import ctypes
import os
import pathlib
import sys
import tempfile

import numpy

port, (rows, columns) = sys.argv[1], map(int, sys.argv[2:4])
frames = numpy.load(sys.argv[4])
# Read when the libraries are loaded.
os.environ |= {"EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1", "EPICS_PVAS_SERVER_PORT": port, "EPICS_PVAS_BROADCAST_PORT": "0",
               "EPICS_PVA_BROADCAST_PORT": "0", "EPICS_CAS_INTF_ADDR_LIST": "127.0.0.1"}
from epicscorelibs import ioc, path  # noqa: E402

RECORDS = f"""
record(waveform, "KEEPUP:Data") {{
    field(FTVL, "USHORT") field(NELM, "{rows * columns}")
    info(Q:group, {{"KEEPUP:Image": {{
        "+id": "epics:nt/NTNDArray:1.0",
        "value": {{+type: "any", +channel: "VAL", +trigger: "*"}},
        "": {{+type: "meta", +channel: "SEVR"}}
    }}}})
}}
record(longout, "KEEPUP:Id") {{
    info(Q:group, {{"KEEPUP:Image": {{"uniqueId": {{+channel: "VAL", +type: "plain"}}}}}})
}}
record(longout, "KEEPUP:Columns") {{
    field(VAL, "{columns}") field(PINI, "YES")
    info(Q:group, {{"KEEPUP:Image": {{"dimension[0].size": {{+channel: "VAL", +type: "plain"}}}}}})
}}
record(longout, "KEEPUP:Rows") {{
    field(VAL, "{rows}") field(PINI, "YES")
    info(Q:group, {{"KEEPUP:Image": {{"dimension[1].size": {{+channel: "VAL", +type: "plain"}}}}}})
}}
"""
# Numbers of field types in dbFldTypes.h.
USHORT, LONG = 4, 5


def address(name):
    found = ctypes.create_string_buffer(512)
    assert ioc.dbCore.dbNameToAddr(name, found) == 0, name
    return found


def put(record, kind, values):
    values = numpy.ascontiguousarray(values)
    pointer = values.ctypes.data_as(ctypes.c_void_p)
    assert ioc.dbCore.dbPutField(record, kind, pointer, ctypes.c_long(values.size)) == 0


for library in ("pvData", "pvAccess", "pvAccessCA", "pvAccessIOC", "qsrv"):
    ctypes.CDLL(path.get_lib(library), mode=ctypes.RTLD_GLOBAL)
definitions = os.path.join(path.base_path, "dbd").encode()
for file in (b"base.dbd", b"PVAServerRegister.dbd", b"qsrv.dbd"):
    assert ioc.dbLoadDatabase(file, definitions, None) == 0, file
ioc.iocshRegisterCommon()
ioc.registerRecordDeviceDriver(ioc.pdbbase)
with tempfile.TemporaryDirectory() as here:
    database = pathlib.Path(here) / "image.db"
    database.write_text(RECORDS)
    assert ioc.dbLoadRecords(bytes(database), None) == 0
ioc.iocshCmd(b"iocInit")
data, number = address(b"KEEPUP:Data.VAL"), address(b"KEEPUP:Id.VAL")
for index, frame in enumerate([numpy.zeros_like(frames[0]), *frames]):
    # The group is sent when the data changes.
    put(number, LONG, numpy.array([999 + index], "i4"))
    put(data, USHORT, frame)
    print("posted", index, flush=True)
    if not sys.stdin.readline():
        break
