# SPDX-License-Identifier: BSD-2-Clause
"""What simulated nodes do with the files of exports, and with what disks hold."""

import json
import struct
from collections.abc import Sequence
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from moorage.errors import CommandFailed, Failed
from moorage.node.host import Offer, Parcel
from moorage.storage import Command, Output
from moorage.units import MIB

from .contents import copied, place
from .stored import Stored

_TAKING_A_WORD = frozenset({"-f", "-O", "-r", "-t", "-S"})
"""Options of ``qemu-img`` that take a word."""


def contents(san: Stored, node: str, at: str) -> dict[str, Any]:
    """Return size in bytes and data of what is at a path, a device or a URI."""
    found = place(san, node, at)
    if found is None:
        raise CommandFailed(f"nothing is at {at} on {node}")
    records, key = found
    held = records[key]
    size = held["size"] * (1 if records is san.files else MIB)
    return {"size": size, "data": held.get("data", "")}


def qemu_img(san: Stored, node: str, _operands: list[str], command: Command) -> Output:
    """Copy what a disk or a dump holds, make an empty image, or tell of one."""
    words = _parsed(command.argv[2:])
    for path, one in command.confined.contents.items() if command.confined else ():
        if one.made:
            san.files[san.key(node, path)] = _file(one.made)
    if command.argv[1] == "info" and place(san, node, words[0]) is None:
        return Output(code=1)
    if command.argv[1] == "info":
        held = contents(san, node, words[0])
        return Output(json.dumps({"virtual-size": held["size"]}))
    return copied(san, node, *words)


def _parsed(argv: tuple[str, ...]) -> list[str]:
    words = list[str]()
    given = iter(argv)
    for word in given:
        if word in _TAKING_A_WORD:
            next(given)
        elif not word.startswith("-"):
            words.append(word)
    return words


def _file(size: int, data: str = "") -> dict[str, Any]:
    return {"size": size, "data": data}


def printf(san: Stored, node: str, operands: list[str], command: Command) -> Output:
    """Write a text into a file."""
    san.files[san.key(node, command.stdout)] = _file(len(operands[-1]), operands[-1])
    return Output()


def head(san: Stored, node: str, operands: list[str], _command: Command) -> Output:
    """Print a file."""
    found = san.files.get(san.key(node, operands[-1]))
    return Output(found["data"]) if found else Output(code=1)


def od(san: Stored, node: str, operands: list[str], _command: Command) -> Output:
    """Print the beginning of a dump: the header of an image of its size."""
    size = contents(san, node, operands[-1])["size"]
    return Output((struct.pack(">4sI16xQ", b"QFI\xfb", 2, size)).hex(" "))


def digest(san: Stored, node: str, operands: list[str], _command: Command) -> Output:
    """Print the checksum of a file."""
    return Output(f"{_sum(contents(san, node, operands[-1]))} *-\n")


def offered(san: Stored, node: str, offer: Offer) -> str:
    """Return the key of the directory whose files are offered; all have to be there."""
    for parcel in offer.parcels:
        if contents(san, node, parcel.path)["size"] != parcel.size:
            raise Failed(f"{parcel.path} is not as long as its manifest says")
    first = PurePosixPath(offer.parcels[0].path)
    return san.key(node, str(first.parent))


def fetched(san: Stored, node: str, parcels: Sequence[Parcel], place: str) -> None:
    """Put what is offered at a place into files of a node."""
    for parcel in parcels:
        folder, _, name = parcel.path.rpartition("/")
        found = san.files.get(f"{place}/{name}")
        if found is None or not san.beneath(node, folder):
            raise Failed(f"there is no {parcel.path}, or nothing to fetch for it")
        if parcel.sha256 and parcel.sha256 != _sum(found):
            raise Failed(
                f"dump {name} is not what was exported: what came has another checksum"
            )
        san.files[san.key(node, parcel.path)] = found


def _sum(found: dict[str, Any]) -> str:
    told = {"size": found["size"], "data": found.get("data", "")}
    return sha256(json.dumps(told).encode()).hexdigest()


def find(san: Stored, node: str, operands: list[str], _command: Command) -> Output:
    """Print the directories below one."""
    root = san.key(node, operands[0])
    inside = [key for key in san.files if key.startswith(f"{root}/")]
    names = {key.removeprefix(f"{root}/").partition("/")[0] for key in inside}
    return Output("".join(f"{name}\n" for name in sorted(names)))


def os_script(san: Stored, node: str, command: Command) -> Output:
    """Do what the script of an OS does: one that exports or imports moves data."""
    action = PurePosixPath(command.argv[0]).name
    if action == "export":
        held = contents(san, node, command.env["EXPORT_DEVICE"])
        san.files[san.key(node, command.stdout)] = held
    elif action == "import":
        copied(san, node, command.stdin, command.env["IMPORT_DEVICE"])
    return Output()
