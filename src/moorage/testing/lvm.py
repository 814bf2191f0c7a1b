# SPDX-License-Identifier: BSD-2-Clause
"""LVM on simulated nodes: volume groups, their volumes, and the programs' answers."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from moorage.storage import Output
from moorage.units import MIB

from .arguments import Records, parsed

GROUP = "xenvg"
"""The volume group that every simulated node has, unless somebody takes it away."""
_EXTENT = 4 * MIB
_USUAL = {"devices": {"/dev/sda": 512 * 1024, "/dev/sdb": 512 * 1024}}
"""Physical volumes of a group, with their sizes in MiB."""
_FAILED = 5
_CHANGING = ("lvcreate", "lvremove", "lvextend", "lvchange", "lvrename")
PROGRAMS = ("lvs", "vgs", "pvs", *_CHANGING, "pvchange", "vgreduce")
"""The programs that it answers for: each has a method of its name."""


class Lvm:
    """What one node's LVM knows.

    Parameters
    ----------
    volumes
        Logical volumes of all nodes by ``node group/volume``: ``size`` in MiB, and
        ``data``, ``tags``, ``origin`` and ``devices``.
    groups
        Volume groups of all nodes by ``node group``: ``devices`` with sizes in MiB;
        where none is said, there is :data:`GROUP`.
    """

    def __init__(self, node: str, volumes: Records, groups: Records) -> None:
        self._node = node
        self._volumes = volumes
        self._groups = groups

    def answer(self, program: str, argv: tuple[str, ...]) -> Output:
        """Return what a program prints."""
        options, operands = parsed(argv, _SWITCHES)
        output: Output = getattr(self, f"_{program}")(options, operands)
        return output

    def _group(self, name: str) -> Mapping[str, Any] | None:
        known = self._groups.get(f"{self._node} {name}")
        return known or (_USUAL if name == GROUP else None)

    def _in(self, group: str) -> dict[str, dict[str, Any]]:
        """Return the volumes of a group, by name."""
        prefix = f"{self._node} {group}/"
        keys = [key for key in self._volumes if key.startswith(prefix)]
        return {key.removeprefix(prefix): self._volumes[key] for key in keys}

    def _lvs(self, options: Mapping[str, str], operands: list[str]) -> Output:
        (group,) = operands
        if self._group(group) is None:
            return _no(f'Volume group "{group}" not found')
        field, _, wanted = options.get("--select", "").partition("=")
        rows = []
        for name, found in self._in(group).items():
            row = _row(name, found)
            if not field or row[field] == wanted:
                rows.append(row)
        return _report("lv", rows)

    def _vgs(self, _options: Mapping[str, str], _operands: list[str]) -> Output:
        return _report("vg", [self._vg(name) for name in self._names()])

    def _names(self) -> list[str]:
        prefix = f"{self._node} "
        told = {key.removeprefix(prefix) for key in self._groups if prefix in key}
        return sorted(told | {GROUP})

    def _vg(self, name: str) -> dict[str, str]:
        group = self._group(name) or {"devices": {}}
        total = sum(group["devices"].values())
        used = sum(one["size"] for one in self._in(name).values())
        sizes = {"vg_size": f"{total * MIB}", "vg_free": f"{(total - used) * MIB}"}
        return {"vg_name": name, **sizes, "vg_missing_pv_count": "0"}

    def _pvs(self, options: Mapping[str, str], _operands: list[str]) -> Output:
        only = options.get("--select", "").removeprefix("vg_name=")
        rows = [
            one
            for name in ([only] if only else self._names())
            for one in self._on(name)
        ]
        return _report("pv", rows)

    def _on(self, name: str) -> list[dict[str, str]]:
        """Return the physical volumes of a group."""
        group = self._group(name) or {"devices": {}}
        taken = {at for one in self._in(name).values() for at in one["devices"]}
        return [
            {
                "pv_name": device,
                "vg_name": name,
                "pv_size": f"{size * MIB}",
                "pv_free": f"{0 if device in taken else size * MIB}",
                "pv_used": f"{size * MIB if device in taken else 0}",
                "pv_allocatable": "" if device in self._closed(name) else "allocatable",
            }
            for device, size in group["devices"].items()
        ]

    def _closed(self, name: str) -> list[str]:
        """Return the devices that take no new volumes."""
        return list(self._groups.get(f"{self._node} {name}", {}).get("closed", ()))

    def _lvcreate(self, options: Mapping[str, str], operands: list[str]) -> Output:
        if "--snapshot" in options:
            return self._snapshot(options["--name"], *operands)
        group, *devices = operands
        name, size = options["--name"], _mib(options["--size"])
        if self._group(group) is None:
            return _no(f'Volume group "{group}" not found')
        if name in self._in(group):
            return _no(f'Logical Volume "{name}" already exists in volume group')
        new = {"size": size, "data": "", "tags": "", "origin": "", "devices": devices}
        self._volumes[f"{self._node} {group}/{name}"] = new
        return Output()

    def _snapshot(self, name: str, of: str, *devices: str) -> Output:
        group, _, origin = of.partition("/")
        found = self._in(group).get(origin)
        if found is None:
            return _no(f'Failed to find logical volume "{of}"')
        if found["origin"]:
            return _no("Snapshots of snapshots are not supported.")
        copy = found | {"origin": origin, "tags": "", "devices": [*devices]}
        self._volumes[f"{self._node} {group}/{name}"] = copy
        return Output()

    def _on_one(
        self, of: str, change: Callable[[dict[str, Any]], dict[str, Any] | None]
    ) -> Output:
        """Change a volume; one that becomes nothing is gone."""
        key = f"{self._node} {of}"
        if key not in self._volumes:
            return _no(f'Failed to find logical volume "{of}"')
        new = change(self._volumes[key])
        if new is None:
            del self._volumes[key]
        else:
            self._volumes[key] = new
        return Output()

    def _lvremove(self, _options: Mapping[str, str], operands: list[str]) -> Output:
        return self._on_one(operands[0], lambda _found: None)

    def _lvextend(self, options: Mapping[str, str], operands: list[str]) -> Output:
        size, (group, _, name) = _mib(options["--size"]), operands[0].partition("/")
        there = self._in(group)
        if any(one["origin"] == name for one in there.values()) or (
            name in there and there[name]["origin"]
        ):
            return _no("Snapshot origin volumes can be resized only while inactive")
        return self._on_one(operands[0], lambda found: found | {"size": size})

    def _lvchange(self, options: Mapping[str, str], operands: list[str]) -> Output:
        added = options.get("--addtag")
        return self._on_one(
            operands[0], lambda found: found | ({"tags": added} if added else {})
        )

    def _pvchange(self, options: Mapping[str, str], operands: list[str]) -> Output:
        (device,) = operands
        for name in self._names():
            group = self._group(name) or {"devices": {}}
            if device in group["devices"]:
                closed = {*self._closed(name)} - {device}
                if options["--allocatable"] == "n":
                    closed |= {device}
                self._groups[f"{self._node} {name}"] = {
                    **group,
                    "closed": sorted(closed),
                }
                return Output()
        return _no(f'Failed to find physical volume "{device}"')

    def _vgreduce(self, _options: Mapping[str, str], operands: list[str]) -> Output:
        (name,) = operands
        there = self._group(name) is not None
        return Output() if there else _no(f'Volume group "{name}" not found')

    def _lvrename(self, _options: Mapping[str, str], operands: list[str]) -> Output:
        group, old, new = operands
        found = self._in(group).get(old)
        if found is None or new in self._in(group):
            return _no(f'Existing logical volume "{old}" not found, or {new} exists')
        self._volumes[f"{self._node} {group}/{new}"] = found
        del self._volumes[f"{self._node} {group}/{old}"]
        return Output()


_SWITCHES = frozenset(
    {"--yes", "--snapshot", "--nosuffix", "--removemissing", "--force"}
)


def _mib(text: str) -> int:
    """Return a size like ``10m`` in whole extents, as MiB."""
    asked = int(text.removesuffix("m")) * MIB
    return -(-asked // _EXTENT) * _EXTENT // MIB


def _row(name: str, found: Mapping[str, Any]) -> dict[str, str]:
    return {
        "lv_name": name,
        "lv_size": f"{found['size'] * MIB}",
        "lv_tags": found["tags"],
        "lv_layout": "linear",
        "origin": found["origin"],
        "vg_extent_size": f"{_EXTENT}",
        "devices": ",".join(f"{one}(0)" for one in found["devices"]),
    }


def _report(kind: str, rows: list[dict[str, str]]) -> Output:
    return Output(json.dumps({"report": [{kind: rows}]}))


def _no(why: str) -> Output:
    return Output(why, _FAILED)
