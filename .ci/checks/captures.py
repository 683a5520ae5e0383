"""Writes capture files with scapy, in every format and with every link layer, and compares what keepup records of them.

usage: captures.py KEEPUP DIRECTORY
"""
import json
import pathlib
import struct
import subprocess
import sys

from scapy.all import (IP, UDP, CookedLinux, CookedLinuxV2, Dot1Q, Ether, IPv6, PcapNgWriter, PcapWriter, Raw,
                       fragment)

keepup, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
PACKETS, PORT = 50, 4001


def payload(number):
    return struct.pack(">Q", number) + bytes((number * 7 + at) % 256 for at in range(100 + number))


def network(layer, number):
    ip = IPv6(src="fd00::7", dst="fd00::8") if layer == 6 else IP(src="10.1.2.3", dst="10.1.2.4")
    return ip / UDP(sport=7000, dport=PORT) / Raw(payload(number))


def links(number):
    """Link type, and frame."""
    vlan = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / Dot1Q(vlan=7)
    return {
        "ethernet": (1, Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / network(4, number)),
        "vlan": (1, vlan / Dot1Q(vlan=9) / network(4, number)),
        "ipv6": (1, vlan / network(6, number)),
        "cooked": (113, CookedLinux() / network(4, number)),
        "cooked2": (276, CookedLinuxV2() / network(6, number)),
        "raw": (101, network(4, number)),
    }


def record(path, options=""):
    command = [keepup, "record", "--from", f"pcap:{path},port={PORT}{options}", "--name", path.name, "--json"]
    settings = ["--pool", "64MiB", "--volume", root / "a"]
    done = subprocess.run(command + settings, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    account = json.loads(done.stdout)
    subprocess.run([keepup, "export", root / "a" / path.name, "--to", "raw", "--out", root / f"{path.name}.raw"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = {file.stem: file.read_bytes() for file in (root / f"{path.name}.raw").glob("*.raw")}
    return done.returncode, account, found


def main():
    (root / "a").mkdir(parents=True)
    expected = b"".join(payload(number) for number in range(PACKETS))
    files = 0
    for name in links(0):
        for kind in ("le", "be", "ns", "ng"):
            path = root / f"{name}-{kind}"
            link = links(0)[name][0]
            if kind == "ng":
                writer = PcapNgWriter(str(path))
            else:
                writer = PcapWriter(str(path), linktype=link, endianness=">" if kind == "be" else "<",
                                    nano=kind == "ns")
            for number in range(PACKETS):
                frame = links(number)[name][1]
                frame.time = 1_700_000_000 + number / 1000
                writer.write(frame)
            writer.close()
            code, account, found = record(path)
            assert code == 0 and account["durable"]["events"] == PACKETS, (path, account)
            assert list(found.values()) == [expected], path
            files += 1
    # Packets that cannot be recorded are counted.
    path = root / "mixed"
    writer = PcapWriter(str(path), linktype=101)
    for number in range(PACKETS):
        writer.write(network(4, number))
    for part in fragment(network(4, PACKETS), fragsize=64):
        writer.write(part)
    writer.write(IP(dst="10.1.2.4") / UDP(dport=53) / Raw(b"?"))
    writer.close()
    path.write_bytes(path.read_bytes()[:-2])
    code, account, found = record(path)
    rejected = json.dumps(account["rejected"])
    assert code == 1 and list(found.values()) == [expected], account
    assert "IP fragments" in rejected and "ends within a record" in rejected, rejected
    print(f"{files + 1} files of scapy recorded")


main()
