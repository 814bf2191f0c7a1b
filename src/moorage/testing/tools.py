# SPDX-License-Identifier: BSD-2-Clause
"""Programs of a node, as they work on simulated storage."""

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from moorage.storage import Command, Output
from moorage.units import MIB

from . import exports
from .lvm import PROGRAMS, Lvm
from .rbd import Rbd
from .stored import EXPORTS_DIR, Stored


def _mount(san: Stored, node: str, operands: list[str], _command: Command) -> Output:
    source, directory = operands[-2:]
    san.mounts[f"{node} {directory}"] = {"source": source}
    return Output()


def _findmnt(san: Stored, node: str, operands: list[str], _command: Command) -> Output:
    found = san.mounts.get(f"{node} {operands[-1]}")
    return Output(f"{found['source']}\n") if found else Output(code=1)


def _test(san: Stored, node: str, operands: list[str], command: Command) -> Output:
    kind, path = command.argv[1], operands[-1]
    if kind == "-d" and PurePosixPath(path).is_relative_to(EXPORTS_DIR):
        return Output(code=0 if san.beneath(node, path) else 1)
    if kind == "-d":
        return Output()
    if kind == "-b":
        known = san.device(node, path).kind == "block"
        return Output(code=0 if known else 1)
    there = san.key(node, path) in san.files and not san.is_hidden(node, path)
    return Output(code=0 if there else 1)


def _stat(san: Stored, node: str, operands: list[str], _command: Command) -> Output:
    found = san.files.get(san.key(node, operands[-1]))
    return Output(f"{found['size']}\n") if found else Output(code=1)


def _truncate(san: Stored, node: str, operands: list[str], command: Command) -> Output:
    size = next(a for a in command.argv if a.startswith("--size="))
    wanted = size.removeprefix("--size=")
    key = san.key(node, operands[-1])
    old = san.files.get(key) or {"size": 0, "data": ""}
    least = old["size"] if wanted.startswith(">") else 0
    san.files[key] = old | {"size": max(least, _bytes(wanted.lstrip(">")))}
    return Output()


def _fallocate(san: Stored, node: str, operands: list[str], command: Command) -> Output:
    span = {
        part.split("=")[0]: int(part.split("=")[1])
        for part in command.argv
        if "=" in part
    }
    key = san.key(node, operands[-1])
    old = san.files.get(key) or {"size": 0, "data": ""}
    san.files[key] = old | {"size": span["--offset"] + span["--length"]}
    return Output()


def _rm(san: Stored, node: str, operands: list[str], _command: Command) -> Output:
    keys = [san.key(node, path) for path in operands]
    keys += [key for path in operands for key in san.beneath(node, path)]
    gone = [key for key in keys if san.files.pop(key, None) is not None]
    return Output("".join(f"removed '{key}'\n" for key in gone))


def _copy(san: Stored, node: str, operands: list[str], command: Command) -> Output:
    source, target = (san.key(node, path) for path in operands[-2:])
    inside = san.beneath(node, operands[-2])
    for key in inside:
        san.files[key.replace(source, target, 1)] = san.files.pop(key)
    if inside:
        return Output()
    if source not in san.files:
        return Output(f"no such file: {source}", 1)
    san.files[target] = dict(san.files[source])
    if command.argv[0] == "mv":
        del san.files[source]
    return Output()


def _find(san: Stored, node: str, operands: list[str], command: Command) -> Output:
    root = operands[0]
    if "d" in command.argv:
        return exports.find(san, node, operands, command)
    front = san.key(node, root)
    found = [
        f"{file['size']} {key.removeprefix(f'{front}/')}\0"
        for key, file in san.files.items()
        if key.startswith(f"{front}/")
    ]
    return Output("" if san.is_hidden(node, root) else "".join(found))


def _lvm(san: Stored, node: str, _operands: list[str], command: Command) -> Output:
    lvm = Lvm(node, san.logical, san.groups)
    return lvm.answer(PurePosixPath(command.argv[0]).name, command.argv)


def _rbd(san: Stored, node: str, _operands: list[str], command: Command) -> Output:
    ceph = Rbd(node, san.volumes, san.attached)
    return ceph.answer(PurePosixPath(command.argv[0]).name, command.argv)


def _qemu_io(san: Stored, _node: str, _operands: list[str], command: Command) -> Output:
    """Write a pattern to a volume, or look whether it is there."""
    name = san.volume_at(command.argv[-1])
    verb, _, pattern, *_ = command.argv[command.argv.index("-c") + 1].split()
    if not name:
        return Output(code=1)
    found = san.volumes[name]
    if verb == "read":
        return Output(code=0 if found.get("pattern") == pattern else 1)
    san.volumes[name] = found | {"pattern": pattern}
    return Output()


def _nothing(
    _san: Stored, _node: str, _operands: list[str], _command: Command
) -> Output:
    return Output()


def _blockdev(
    san: Stored, _node: str, operands: list[str], _command: Command
) -> Output:
    device = san.devices.get(operands[-1])
    return Output(f"{device['size'] * MIB}\n") if device else Output(code=1)


def _bytes(text: str) -> int:
    """Return a size as ``truncate`` reads it."""
    return int(text[:-1]) * MIB if text.endswith("M") else int(text)


Tool = Callable[[Stored, str, list[str], Command], Output]
TOOLS: Mapping[str, Tool] = {
    "qemu-io": _qemu_io,
    "test": _test,
    "stat": _stat,
    "truncate": _truncate,
    "fallocate": _fallocate,
    "rm": _rm,
    "cp": _copy,
    "mv": _copy,
    "mkdir": _nothing,
    "rmdir": _nothing,
    "find": _find,
    "chmod": _nothing,
    "mount": _mount,
    "findmnt": _findmnt,
    "blockdev": _blockdev,
    **dict.fromkeys(PROGRAMS, _lvm),
    **dict.fromkeys(("rbd", "ceph"), _rbd),
    "sync": _nothing,
    "qemu-img": exports.qemu_img,
    "printf": exports.printf,
    "head": exports.head,
    "od": exports.od,
    "sha256sum": exports.digest,
}
