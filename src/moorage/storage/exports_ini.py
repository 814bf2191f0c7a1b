# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's description of an export, ``config.ini``: written for it, and read from it.

It has the sections ``export``, ``instance``, ``hypervisor``, ``backend`` and ``os``.
Values are Python's texts of them; parameters are filled with Ganeti's defaults.
"""

from ast import literal_eval
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as NoIni
from io import StringIO
from math import isfinite
from typing import Any

from moorage.errors import BadInput
from moorage.hypervisors import KVM
from moorage.model import DISKLESS, Nic
from moorage.model.export import Dump, Export, Exported, Form
from moorage.units import Mib

Sections = Mapping[str, Mapping[str, Any]]
_NICPARAMS = ("mode", "link", "vlan", "filter")
_VERSION = "0"
"""Of Ganeti's format."""


def _parser() -> ConfigParser:
    found = ConfigParser(interpolation=None, delimiters=("=",), strict=False)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    return found


def to_ini(export: Export, filled: Sections) -> str:
    """Return the description of an export of an instance.

    Parameters
    ----------
    filled
        ``hypervisor``, ``backend`` and ``os``: parameters with all defaults.
    """
    instance = export.instance
    if instance is None:
        raise BadInput("Ganeti knows no export of a disk alone", hint="--format qcow2")
    parser = _parser()
    parser["export"] = {
        "version": _VERSION,
        "timestamp": f"{int(export.made)}",
        "source": export.node,
        "os": instance.os,
        "compression": "none",
    }
    parser["instance"] = _instance(export, instance, filled.get("backend", {}))
    for section in ("hypervisor", "backend", "os"):
        known = filled.get(section, {})
        parser[section] = {key: _text(one) for key, one in known.items()}
    found = StringIO()
    parser.write(found)
    return found.getvalue()


def _instance(
    export: Export, instance: Exported, backend: Mapping[str, Any]
) -> dict[str, str]:
    templates = {dump.dev_type for dump in export.dumps} or {DISKLESS}
    found = {
        "name": instance.name,
        **{key: _text(backend.get(key)) for key in ("maxmem", "minmem", "vcpus")},
        "memory": _text(backend.get("maxmem")),
        "disk_template": min(templates),
        "hypervisor": instance.hypervisor,
        "tags": " ".join(instance.tags),
        "nic_count": f"{len(instance.nics)}",
        "disk_count": f"{len(export.dumps)}",
    }
    for slot, nic in enumerate(instance.nics):
        found |= _numbered("nic", slot, _of_nic(nic))
    for slot, dump in enumerate(export.dumps):
        told = {
            "ivname": f"disk/{slot}",
            "dump": dump.file,
            "size": f"{dump.size}",
            "name": _text(dump.name),
        }
        found |= _numbered("disk", slot, told)
    return found


def _of_nic(nic: Nic) -> dict[str, str]:
    params = {key: _text(nic.nicparams.get(key, "")) for key in _NICPARAMS}
    return {
        "mac": nic.mac,
        "ip": _text(nic.ip),
        "name": _text(nic.name),
        "network": _text(nic.network),
        **params,
    }


def _numbered(word: str, number: int, told: Mapping[str, str]) -> dict[str, str]:
    return {f"{word}{number}_{key}": value for key, value in told.items()}


def _text(value: object) -> str:
    return str(value).replace("\n", " ")


def from_ini(name: str, text: str) -> Export:
    """Return what a description says; where parameters are, they are texts no more.

    Raises
    ------
    BadInput
        If it is none, or of another version.
    """
    parser = _parser()
    try:
        parser.read_string(text)
        about = dict(parser["export"])
        if about["version"] != _VERSION:
            raise BadInput(
                f"export {name} is of version {about['version']}, not {_VERSION}"
            )
        return _export(name, parser, about)
    except (NoIni, KeyError, ValueError) as error:
        raise BadInput(f"config.ini of export {name} cannot be read: {error}") from None


def _export(name: str, parser: ConfigParser, about: Mapping[str, str]) -> Export:
    told = dict(parser["instance"])
    os = about.get("os", "")
    sections = {
        section: {key: _value(one) for key, one in parser[section].items()}
        for section in ("hypervisor", "backend", "os")
        if parser.has_section(section)
    }
    return Export(
        name=name,
        made=_moment(about.get("timestamp", "0")),
        node=about.get("source", ""),
        instance=Exported(
            name=told["name"],
            os=os,
            hypervisor=told.get("hypervisor", KVM),
            hvparams=sections.get("hypervisor", {}),
            beparams=sections.get("backend", {}),
            osparams=dict(parser["os"]) if parser.has_section("os") else {},
            nics=tuple(_nic(told, slot) for slot in range(_count(told, "nic"))),
            tags=tuple(told.get("tags", "").split()),
        ),
        dumps=tuple(_dump(told, slot, os) for slot in range(_count(told, "disk"))),
    )


def _moment(text: str) -> float:
    found = float(text)
    if not isfinite(found):
        raise ValueError(f"{text} is no moment")
    return found


def _count(told: Mapping[str, str], word: str) -> int:
    return min(int(told.get(f"{word}_count", 0)), 64)


def _nic(told: Mapping[str, str], slot: int) -> Nic:
    values = {
        key: _given(told.get(f"nic{slot}_{key}"))
        for key in ("mac", "ip", "name", *_NICPARAMS)
    }
    params = {key: values[key] for key in _NICPARAMS if values[key]}
    return Nic(
        uuid="",
        mac=values["mac"] or "",
        ip=values["ip"],
        name=values["name"],
        nicparams=params,
    )


def _dump(told: Mapping[str, str], slot: int, os: str) -> Dump:
    return Dump(
        file=told[f"disk{slot}_dump"],
        form=Form.OS if os else Form.RAW,
        size=Mib(int(told[f"disk{slot}_size"])),
        dev_type=told.get("disk_template", ""),
        name=_given(told.get(f"disk{slot}_name")),
    )


def _given(value: str | None) -> str | None:
    return None if value in (None, "", "None", "none") else value


def _value(text: str) -> Any:  # noqa: ANN401
    """Return the number or truth that a text stands for, or else the text."""
    try:
        found = literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return found if isinstance(found, bool | int | float | None) else text
