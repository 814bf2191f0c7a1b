# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance info: all about instances, in a layout that YAML readers take."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fills
from moorage.cli.follow import fetch
from moorage.cli.options import DEBUG, JSON, PRIORITY
from moorage.cli.table import moment
from moorage.cli.yamlish import Flow, defaulted, lines
from moorage.errors import BadInput
from moorage.units import format_size


def _info(call: Call) -> None:
    if not call.words and not call.option("all"):
        raise BadInput("no instance is named", hint="name some, or say --all")
    found = fetch(
        call,
        instances=[] if call.option("all") else call.words,
        static=bool(call.option("static")),
        use_locking=False,
    )
    told: Any = [instance(one) for one in found.values()]
    call.show([*found.values()], lines(roman(told) if call.option("roman") else told))


_NUMERALS = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC")),
    *((50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)


_TOO_LARGE = 4000


def roman(told: Any) -> Any:  # noqa: ANN401 - whatever is shown
    """Return what is shown with its numbers in Roman numerals, from 1 to 3999.

    >>> roman({"vcpus": 14, "name": "web1"})
    {'vcpus': 'XIV', 'name': 'web1'}
    """
    if isinstance(told, Mapping):
        return {key: roman(value) for key, value in told.items()}
    if isinstance(told, list):
        return [roman(one) for one in told]
    if isinstance(told, str):
        return _DEFAULT.sub(lambda found: f"default ({_numeral(int(found[1]))})", told)
    whole = isinstance(told, int) and not isinstance(told, bool)
    return _numeral(told) if whole else told


_DEFAULT = re.compile(r"^default \(([0-9]+)\)$")


def _numeral(number: int) -> int | str:
    """Return a number in Roman numerals, or as it is where there are none."""
    if not 0 < number < _TOO_LARGE:
        return number
    text = ""
    for value, numeral in _NUMERALS:
        count, number = divmod(number, value)
        text += numeral * count
    return text


def instance(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of an instance."""
    state = f"configured to be {one['config_state']}"
    if one["run_state"] is not None:
        state += f", actual state is {one['run_state']}"
    shown: dict[str, Any] = {
        "Instance name": one["name"],
        "UUID": one["uuid"],
        "Serial number": one["serial_no"],
        "Creation time": moment(one["ctime"]),
        "Modification time": moment(one["mtime"]),
        "State": state,
        **_standstill(one),
        "Nodes": list(_nodes(one)),
        "Operating system": one["os"],
        "Operating system parameters": defaulted(one["os_instance"], one["os_actual"]),
    }
    shown["Allocated network port"] = one["network_port"]
    return {**shown, **_guest(one)}


def _screen(one: Mapping[str, Any]) -> dict[str, str]:
    """Return where a viewer finds the screen, in Ganeti's words."""
    address = (one.get("hv_actual") or {}).get("vnc_bind_address")
    if not (address and one["network_port"]) or address.startswith("/"):
        return {}
    node, port = one["pnode"], one["network_port"]
    told = f"{node}:{port}" if address in _ANY else f"{address}:{port} (node {node})"
    return {"console connection": f"vnc to {told} (display {port - _DISPLAYS})"}


_DISPLAYS = 5900
"""The port of VNC's first display."""
_ANY = frozenset({"0.0.0.0", "::"})  # noqa: S104 - nothing listens here


def _standstill(one: Mapping[str, Any]) -> dict[str, str]:
    """Return what is not as it usually is with a guest that has a process."""
    words = {
        "Standing still": "run_cause",
        "What to do": "run_remedy",
        "Started": "run_origin",
        "Memory now": "run_memory",
    }
    return {word: str(one[key]) for word, key in words.items() if one.get(key)}


def _guest(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "Hypervisor": one["hypervisor"],
        **_screen(one),
        "Hypervisor parameters": defaulted(one["hv_instance"], one["hv_actual"]),
        "Back-end parameters": defaulted(one["be_instance"], _back_end(one)),
        "NICs": [_nic(number, given) for number, given in enumerate(one["nics"])],
        "Disk template": one["disk_template"],
        "Disks": [disk(number, d) for number, d in enumerate(one["disks"])],
    }


def _back_end(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return all back-end parameters, ``memory`` included, as Ganeti shows it."""
    return {**one["be_actual"], "memory": one["be_actual"].get("maxmem")}


def _nodes(one: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    group, uuid = one["pnode_group_name"], one["pnode_group_uuid"]
    yield {"primary": one["pnode"], "group": f"{group} (UUID {uuid})"}
    names, groups = one["snodes"], one["snodes_group_names"]
    others = zip(names, groups, one["snodes_group_uuids"], strict=True)
    told = (f"{name} (group {at}, group UUID {uuid})" for name, at, uuid in others)
    yield {"secondaries": ", ".join(told)}


def _nic(number: int, given: Sequence[Any]) -> dict[str, Any]:
    name, uuid, ip, mac, mode, link, vlan, _, network = given
    return {
        f"nic/{number}": "",
        "MAC": mac,
        "IP": ip,
        "mode": mode,
        "link": link,
        "vlan": vlan,
        "network": network and network["name"],
        "UUID": uuid,
        "name": name,
    }


_SIDES = (("on primary", "held", "pstatus"), ("on secondary", "copy", "sstatus"))


def disk(number: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of a disk, its children included."""
    slot = given.get("iv_name") or f"disk/{number}"
    size = given.get("size")
    known = format_size(size) if isinstance(size, int | float) else "unknown"
    shown: dict[str, Any] = {
        str(slot): f"{given.get('dev_type')}, size {known}",
        **({"access mode": given["mode"]} if "mode" in given else {}),
        **_place(given),
    }
    for word, key, block in _SIDES:
        if given.get(key):
            shown[word] = device(given[key], given.get(block))
    shown |= {"name": given.get("name"), "UUID": given.get("uuid")}
    if given.get("behind"):
        shown["missed writes"] = f"the copy on {given['behind']}, when last seen"
    for word, key in (("storage pool", "pool"), ("quarantine", "quarantine")):
        if given.get(key):
            shown[word] = given[key]
    children = given.get("children") or ()
    if children:
        named = ({**c, "iv_name": f"child {n}"} for n, c in enumerate(children))
        shown["child devices"] = [disk(n, one) for n, one in enumerate(named)]
    return shown


def _place(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return where the data is; of a mirrored disk the nodes, in Ganeti's words."""
    pair = given.get("drbd_info")
    where = given.get("logical_id") or ()
    if given.get("dev_type") == "plain" and where:
        return {"logical_id": "/".join(map(str, where))}
    if not pair:
        return {"logical_id": Flow(where)}
    return {
        "nodeA": f"{pair['primary_node']}, minor={pair['primary_minor']}",
        "nodeB": f"{pair['secondary_node']}, minor={pair['secondary_minor']}",
        "port": pair["port"],
    }


def device(status: Mapping[str, Any], block: Sequence[Any] | None = None) -> str:
    """Return where a disk is on a node: its device, or its URIs.

    Parameters
    ----------
    block
        The device as Ganeti describes it, with its numbers; None where nobody did.
    """
    uris = [f"{kind}:{uri}" for kind, uri in (status.get("uris") or {}).items()]
    mirror = status.get("mirror")
    here = [f"/dev/drbd{mirror['minor']}"] if mirror else []
    path = [status["path"]] if status.get("path") else here
    if block and path:
        major, minor = ("N/A" if one is None else one for one in block[1:3])
        path = [f"{path[0]} ({major}:{minor})"]
    told = [mirrored(mirror)] if mirror else []
    return " ".join([*path, *told, *uris]) or "not active"


def mirrored(side: Mapping[str, Any]) -> str:
    """Return how a copy is, in Ganeti's words, for scripts look for them.

    >>> mirrored({"connection": "StandAlone", "disk": "UpToDate", "peer_disk": "?"})
    'StandAlone, UpToDate/?, status *DEGRADED*'
    """
    link, disks = side["connection"], (side["disk"], side["peer_disk"])
    if side.get("percent") is not None:
        left = "unknown" if side.get("seconds") is None else f"{side['seconds']}s"
        told = f"*RECOVERING* {side['percent']:5.2f}%, ETA {left}"
    elif disks == (_GOOD, _GOOD):
        return "in sync, status ok"
    else:
        told = f"{link}, {'/'.join(disks)}"
    lost = " *MISSING DISK*" if disks[0] in ("Diskless", "Failed") else ""
    return f"{told}, status *DEGRADED*{lost}"


_GOOD = "UpToDate"


COMMANDS = (
    Command(
        "info",
        _info,
        (Operand("INSTANCE", 0, None),),
        (
            Option(("--all",), "every instance"),
            *fills("-s/--static"),
            Option(("--roman",), "numbers in Roman numerals"),
            PRIORITY,
            JSON,
            DEBUG,
        ),
        {"gnt-instance info web1": "one of them"},
        operation="OP_INSTANCE_QUERY_DATA",
    ),
)
