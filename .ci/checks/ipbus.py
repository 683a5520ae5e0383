"""Drives the IPbus target of keepup with uHAL, the official client: both must agree on every word."""
import random
import re
import signal
import subprocess
import sys

import uhal

IDENTITY_ADDRESS, IDENTITY = 0x80000000, 0x6B656570
INCREMENTAL, FIFO = uhal.BlockReadWriteMode.INCREMENTAL, uhal.BlockReadWriteMode.NON_INCREMENTAL


def exercise(client, seed):
    """Every kind of transaction, with what it must give."""
    draw = random.Random(seed)
    words = [draw.getrandbits(32) for _ in range(5000)]
    client.writeBlock(7, words)
    back = client.readBlock(7, len(words))
    single = [client.read(7 + index) for index in range(300)]
    client.dispatch()
    assert list(back) == words, "a block came back as another"
    assert [int(word) for word in single] == words[:300], "single words came back as others"

    client.writeBlock(3, words, FIFO)
    fifo = client.readBlock(3, 600, FIFO)
    client.write(4, 0x12345678)
    old_bits = client.rmw_bits(4, 0xFFFF0000, 0x42)
    old_sum = client.rmw_sum(4, -1)
    new = client.read(4)
    identity = client.read(IDENTITY_ADDRESS)
    client.dispatch()
    assert list(fifo) == [words[-1]] * 600, "a FIFO does not give the word that was written last"
    assert (int(old_bits), int(old_sum), int(new)) == (0x12345678, 0x12340042, 0x12340041), "changed wrongly"
    assert int(identity) == IDENTITY, "another identity"


def refused(client, address):
    """Whether uHAL says that a read fails."""
    try:
        client.read(address)
        client.dispatch()
    except uhal.exception:
        return True
    return False


def main(keepup):
    uhal.setLogLevelTo(uhal.LogLevel.FATAL)
    for options in [], ["--mtu", "9000", "--buffers", "4"]:
        command = [keepup, "register", "serve-ipbus", "--listen", "127.0.0.1:0", "--bus-error", "0x8000", *options]
        target = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            address = re.search(r"listening on (\S+)", target.stderr.readline()).group(1)
            table = "file://" + sys.argv[2]
            for seed in range(3):
                device = uhal.getDevice("target", f"ipbusudp-2.0://{address}", table)
                # Milliseconds. A target that is not let onto a core for a while has lost nothing.
                device.setTimeoutPeriod(60_000)
                exercise(device.getClient(), seed)
            assert refused(device.getClient(), 0x8000), "a bus error passed unnoticed"
            assert refused(device.getClient(), 0x80000001), "a read beyond memory passed unnoticed"
        finally:
            target.send_signal(signal.SIGTERM)
        account, _ = target.communicate(timeout=60)
        counted = dict(re.findall(r"(\S.*?) {2,}(\d+)", account))
        assert counted["datagrams that are not packets"] == "0", account
        assert counted["transactions failed"] == "2", account
        print(f"agreed: {counted['transactions processed']} transactions in {counted['packets processed']} packets")


main(sys.argv[1])
