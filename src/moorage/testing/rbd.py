# SPDX-License-Identifier: BSD-2-Clause
"""A simulated Ceph cluster: one pool, its images, and the answers of its programs."""

import json
from collections.abc import Mapping
from typing import Any

from moorage.storage import Output
from moorage.units import MIB

from .arguments import Records, parsed

POOL = "rbd"
"""The pool that there is, unless images are made in another one."""
ROOM = 1024 * 1024
"""MiB that it has for all images."""
_ABSENT, _EXISTS, _BUSY = 2, 17, 39
_SWITCHES = frozenset({"--all", "--long", "--no-progress"})


class Rbd:
    """What one node sees of Ceph.

    Parameters
    ----------
    volumes
        Images by name: ``size`` in MiB, ``pool``, ``data``, ``note``, ``parent`` and
        ``snaps``.
    attached
        Images that a node's kernel has mapped, by ``node image``.
    """

    def __init__(self, node: str, volumes: Records, attached: Records) -> None:
        self._node = node
        self._volumes = volumes
        self._attached = attached

    def answer(self, program: str, argv: tuple[str, ...]) -> Output:
        """Return what a program prints."""
        if program == "ceph":
            return self._room()
        options, words = parsed(argv, _SWITCHES)
        two = words[0] in ("snap", "image-meta", "namespace")
        verb = "_".join(words[: 1 + two]).replace("-", "_")
        output: Output = getattr(self, f"_{verb}")(options, words[1 + two :])
        return output

    def _room(self) -> Output:
        used = sum(one["size"] for one in self._volumes.values() if "pool" in one)
        stats = {"stored": used * MIB, "max_avail": (ROOM - used) * MIB}
        return Output(json.dumps({"pools": [{"name": POOL, "stats": stats}]}))

    def _found(self, word: str) -> tuple[str, dict[str, Any] | None]:
        pool, _, name = word.partition("@")[0].partition("/")
        found = self._volumes.get(name)
        return name, found if found and found.get("pool") == pool else None

    def _change(self, word: str, **new: Any) -> Output:  # noqa: ANN401
        name, found = self._found(word)
        if found is None:
            return Output(f"error opening image {name}", _ABSENT)
        self._volumes[name] = found | new
        return Output()

    def _info(self, _options: Mapping[str, str], words: list[str]) -> Output:
        name, found = self._found(words[0])
        if found is None:
            return Output(f"error opening image {name}", _ABSENT)
        return Output(json.dumps({"name": name, "size": found["size"] * MIB}))

    def _create(self, options: Mapping[str, str], words: list[str]) -> Output:
        pool, _, name = words[0].partition("/")
        if name in self._volumes:
            return Output("create error: (17) File exists", _EXISTS)
        self._volumes[name] = _image(pool, _mib(options["--size"]))
        return Output()

    def _clone(self, _options: Mapping[str, str], words: list[str]) -> Output:
        source, target = words
        parent, found = self._found(source)
        if found is None or source.partition("@")[2] not in found["snaps"]:
            return Output("error opening parent image", _ABSENT)
        pool, _, name = target.partition("/")
        self._volumes[name] = _image(pool, found["size"], found["data"], parent)
        return Output()

    def _rm(self, _options: Mapping[str, str], words: list[str]) -> Output:
        name, found = self._found(words[0])
        if found is None:
            return Output(f"error opening image {name}", _ABSENT)
        if found["snaps"] or self._children_of(name):
            return Output("image has snapshots - not removing", _BUSY)
        del self._volumes[name]
        return Output()

    def _children_of(self, name: str) -> list[str]:
        found = self._volumes.items()
        return [child for child, one in found if one.get("parent") == name]

    def _children(self, _options: Mapping[str, str], words: list[str]) -> Output:
        pool, _, name = words[0].partition("/")
        found = [{"pool": pool, "image": one} for one in self._children_of(name)]
        return Output(json.dumps(found))

    def _flatten(self, _options: Mapping[str, str], words: list[str]) -> Output:
        return self._change(words[0], parent="")

    def _resize(self, options: Mapping[str, str], words: list[str]) -> Output:
        return self._change(words[0], size=_mib(options["--size"]))

    def _image_meta_set(self, _options: Mapping[str, str], words: list[str]) -> Output:
        return self._change(words[0], note=words[2])

    def _snap_ls(self, _options: Mapping[str, str], words: list[str]) -> Output:
        found = self._found(words[0])[1]
        return Output(json.dumps([{"name": one} for one in (found or {})["snaps"]]))

    def _snap_create(self, _options: Mapping[str, str], words: list[str]) -> Output:
        found, name = self._found(words[0])[1] or {}, words[0].partition("@")[2]
        return self._change(words[0], snaps=[*found.get("snaps", []), name])

    def _snap_rm(self, _options: Mapping[str, str], words: list[str]) -> Output:
        found, name = self._found(words[0])[1] or {}, words[0].partition("@")[2]
        left = [one for one in found.get("snaps", []) if one != name]
        return self._change(words[0], snaps=left)

    def _snap_purge(self, _options: Mapping[str, str], words: list[str]) -> Output:
        return self._change(words[0], snaps=[])

    def _showmapped(self, _options: Mapping[str, str], _words: list[str]) -> Output:
        prefix = f"{self._node} "
        mapped = (key.removeprefix(prefix) for key in self._attached if prefix in key)
        images = ((name, self._volumes.get(name, {})) for name in mapped)
        found = [
            {"pool": one["pool"], "name": name, "snap": "-", "device": f"/dev/{name}"}
            for name, one in images
            if "pool" in one
        ]
        return Output(json.dumps(found))

    def _namespace_ls(self, _options: Mapping[str, str], _words: list[str]) -> Output:
        return Output("[]")

    def _map(self, _options: Mapping[str, str], words: list[str]) -> Output:
        name, found = self._found(words[0])
        if found is None:
            return Output(f"error opening image {name}", _ABSENT)
        self._attached[f"{self._node} {name}"] = {"open": None}
        return Output(f"/dev/{name}\n")

    def _unmap(self, _options: Mapping[str, str], words: list[str]) -> Output:
        self._attached.pop(f"{self._node} {words[0].removeprefix('/dev/')}", None)
        return Output()

    def _ls(self, _options: Mapping[str, str], words: list[str]) -> Output:
        found = [
            {"image": name, "size": one["size"] * MIB, "format": 2}
            for name, one in self._volumes.items()
            if one.get("pool") == words[0]
        ]
        return Output(json.dumps(found))


def _mib(text: str) -> int:
    return int(text.removesuffix("M"))


def _image(pool: str, size: int, data: str = "", parent: str = "") -> dict[str, Any]:
    new = {"pool": pool, "provider": "rbd", "snaps": [], "parent": parent}
    return {"size": size, "data": data, "note": "", **new}
