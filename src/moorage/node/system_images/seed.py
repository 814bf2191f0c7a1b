# SPDX-License-Identifier: BSD-2-Clause
"""What cloud-init finds: its NoCloud data source, as a small FAT file system.

Its files are those of cloud-init's documentation ("NoCloud", and "Networking config
version 1"): ``meta-data``, ``user-data`` and ``network-config``, all of them YAML, of
which JSON is a part.
"""

import base64
import binascii
import json
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from moorage.errors import BadInput, Failed

from .partitions import SECTOR, Partition

PLACE = Partition(1024, 2048)
"""Where it lies: before what images begin with, which is aligned to a MiB."""
SIZE = (PLACE.end - PLACE.start) * SECTOR
_KEYS, _USER_DATA, _SERVERS = 100, 96 << 10, 8
_KEY = re.compile(
    r"([a-z0-9@.-]{1,64}) ([A-Za-z0-9+/]{16,16384}={0,2})( [^\x00-\x1f]*)?"
)
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What YAML takes for the end of a line, or not at all."""
_BEGINNINGS = ("#", "Content-Type:", "MIME-Version:", "From ")
"""How user-data begin that cloud-init knows what to do with."""

_OF_CARDS = (
    *("MAC", "IP", "NETWORK_SUBNET", "NETWORK_GATEWAY"),
    *("NETWORK_SUBNET6", "NETWORK_GATEWAY6"),
)

Environment = Mapping[str, str]
"""The variables of an OS script."""


def files(env: Environment) -> dict[str, str]:
    """Return the files of the seed, by name.

    Raises
    ------
    BadInput
        If a parameter of the OS holds something else.
    """
    meta = {
        "instance-id": env["INSTANCE_UUID"],
        "local-hostname": env["INSTANCE_NAME"],
        "public-keys": ssh_keys(env.get("OSP_SSH_KEY", "")),
    }
    return {
        "meta-data": _yaml(meta),
        "user-data": user_data(env.get("OSP_USER_DATA", "")),
        "network-config": _yaml(network(env)),
    }


def _yaml(value: object) -> str:
    """Return a value as JSON that is YAML, too: that knows no pairs of surrogates."""
    told = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", told)


def check(env: Environment) -> None:
    """Raise `BadInput` if a parameter of the OS holds something else than it may."""
    ssh_keys(env.get("OSP_SSH_KEY", ""))
    user_data(env.get("OSP_USER_DATA", ""))
    _servers(env)


def ssh_keys(given: str) -> list[str]:
    """Return public keys of SSH (RFC 4253, 6.6), which are given one a line."""
    lines = [line.strip() for line in given.splitlines() if line.strip()]
    if len(lines) > _KEYS:
        raise BadInput(f"ssh_key has {len(lines)} keys: {_KEYS} are enough")
    for number, line in enumerate(lines, 1):
        if "PRIVATE KEY" in line:
            raise BadInput("ssh_key is a private key: the guest gets the public one")
        found = _KEY.fullmatch(line)
        if not found or _name(found[2]) != found[1]:
            where = f"line {number} of ssh_key" if len(lines) > 1 else "ssh_key"
            raise BadInput(
                f"{where} is no public key, as ~/.ssh/id_ed25519.pub holds one"
            )
    return lines


def _name(blob: str) -> str:
    """Return the kind of key that a key itself says it is."""
    try:
        raw = base64.b64decode(blob, validate=True)
        (length,) = struct.unpack_from(">I", raw)
        return raw[4 : 4 + length].decode("ascii")
    except (binascii.Error, struct.error, UnicodeError):
        return ""


def user_data(given: str) -> str:
    """Return the user-data; what does nothing where there are none."""
    if not given:
        return "#cloud-config\n{}\n"
    if len(given.encode()) > _USER_DATA:
        raise BadInput(f"user_data has more than {_USER_DATA >> 10} KiB")
    if not given.startswith(_BEGINNINGS):
        raise BadInput(
            "user_data begins with no line that cloud-init knows: #cloud-config, #!, "
            "Content-Type: ..."
        )
    return given if given.endswith("\n") else f"{given}\n"


def network(env: Environment) -> dict[str, Any]:
    """Return how the guest's cards are set up: as they are on record, or by DHCP."""
    cards = [_card(env, slot) for slot in range(int(env.get("NIC_COUNT", "0")))]
    return {"version": 1, "config": cards} if cards else {"config": "disabled"}


def _card(env: Environment, slot: int) -> dict[str, Any]:
    own = {key: env.get(f"NIC_{slot}_{key}", "") for key in _OF_CARDS}
    return {
        "type": "physical",
        "name": f"eth{slot}",
        "mac_address": own["MAC"].lower(),
        "subnets": list(_subnets(own, _servers(env))),
    }


def _subnets(own: Mapping[str, str], servers: list[str]) -> Iterator[dict[str, Any]]:
    """Yield an address that is on record, with its network's size, or DHCP."""
    if own["IP"]:
        address = ip_address(own["IP"])
        six = "6" if address.version == 6 else ""
        around = own[f"NETWORK_SUBNET{six}"]
        if around and address in ip_network(around, strict=False):
            prefix = ip_network(around, strict=False).prefixlen
            gateway = own[f"NETWORK_GATEWAY{six}"]
            found = {
                "type": f"static{six}",
                "address": str(ip_interface(f"{address}/{prefix}")),
            }
            yield (
                found
                | ({"gateway": gateway} if gateway else {})
                | ({"dns_nameservers": servers} if servers else {})
            )
            return
    yield {"type": "dhcp"} | ({"dns_nameservers": servers} if servers else {})


def _servers(env: Environment) -> list[str]:
    words = env.get("OSP_DNS", "").split()
    try:
        found = [str(ip_address(word)) for word in words]
    except ValueError:
        raise BadInput("dns is no list of addresses: 192.0.2.1 192.0.2.2") from None
    if len(found) > _SERVERS:
        raise BadInput(f"dns has {len(found)} addresses: {_SERVERS} are enough")
    return found


def check_tools() -> None:
    """Raise `Failed` if mtools are not installed."""
    if not shutil.which("mformat"):
        raise Failed("mformat is missing", hint="apt-get install mtools")


def file_system(found: Mapping[str, str]) -> bytes:
    """Return a FAT file system of :data:`SIZE` bytes with some files.

    Raises
    ------
    Failed
        If mtools are not installed.
    BadInput
        If the files are larger than it.
    """
    check_tools()
    with TemporaryDirectory(prefix="moorage-seed-") as path:
        image = Path(path) / "seed"
        image.write_bytes(bytes(SIZE))
        tracks = ("-h", "1", "-s", "32", "-t", str(SIZE // SECTOR // 32))
        _run("mformat", "-i", str(image), *tracks, "-v", "CIDATA", "::")
        for name, text in found.items():
            _run("mcopy", "-i", str(image), "-", f"::{name}", fed=text)
        return image.read_bytes()


def _run(*words: str, fed: str = "") -> None:
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "MTOOLSRC": "/dev/null"}
    done = subprocess.run(
        words, check=False, input=fed.encode(), capture_output=True, env=environ
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"exit status {done.returncode}"
        raise Failed(f"{words[0]} failed: {why}")
