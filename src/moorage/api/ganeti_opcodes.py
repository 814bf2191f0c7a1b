# SPDX-License-Identifier: BSD-2-Clause
"""Opcodes as Ganeti's clients send them: with every field, also those not asked for.

They name an object twice, by name and by uuid, measure disks in units, and give what
was left out as null or as its default. What asks for nothing is taken away here; what
asks for something that no operation has stays, and is refused by its name.
"""

from functools import cache
from typing import Any

from msgspec import NODEFAULT, ValidationError, convert
from msgspec.structs import FieldInfo, fields

from moorage.jobs import Operation
from moorage.model.kinds import kinds_of
from moorage.ops import OPERATIONS
from moorage.ops.instance.create import InstanceCreate
from moorage.ops.instance.multi_alloc import InstanceMultiAlloc
from moorage.units import parse_size

_UUIDS = {
    "instance_uuid": ("instance_name",),
    "node_uuid": ("node_name",),
    "node_uuids": ("nodes", "node_names"),
    "pnode_uuid": ("pnode",),
    "remote_node_uuid": ("remote_node",),
    "snode_uuid": ("snode",),
    "src_node_uuid": ("src_node",),
    "target_node_uuid": ("target_node",),
}
"""Fields with a uuid, and those with the name of the same."""
_DEFAULTS: dict[str, object] = {
    "allow_runtime_changes": True,
    "commit": False,
    "compress": "none",
    "debug": False,
    "debug_simulate_errors": False,
    "error_codes": False,
    "force_failover": False,
    "forthcoming": False,
    "identify_defaults": False,
    "ignore_ipolicy": False,
    "ignore_soft_errors": False,
    "instance_communication": False,
    "node_setup": False,
    "power_delay": 2.0,
    "shutdown_timeout": 120,
    "source_shutdown_timeout": 120,
    "timeout": 60,
    "verbose": False,
    "verify_clutter": False,
}
"""What asks for nothing in a field that not every operation has, besides null."""
_NULL = frozenset(
    {
        *("compression_tools", "data_collector_interval"),
        *(
            "destination_x509_ca",
            "disk_state",
            "drbd_helper",
            "enabled_data_collectors",
        ),
        *("file_driver", "helper_shutdown_timeout", "helper_startup_timeout"),
        *("hv_state", "iallocator", "install_image"),
        *("instance_communication_network", "live", "maintain_node_health"),
        *("master_netdev", "master_netmask", "max_tracked_jobs", "modify_etc_hosts"),
        *("output_fields", "prealloc_wipe_disks"),
        *("reserved_lvs", "source_handshake", "source_instance_name"),
        *("source_x509_ca", "use_external_mip_script", "vg_name", "x509_key_name"),
        *("zeroing_image", "zeroing_timeout_fixed", "zeroing_timeout_per_mib"),
    }
)
"""Fields that ask for nothing when they are null, and that not every operation has."""


def plain(opcode: dict[str, Any]) -> dict[str, Any]:
    """Return an opcode without the fields that ask for nothing.

    Raises
    ------
    BadInput
        If a size is a text that is none.

    >>> plain({"OP_ID": "OP_NODE_REMOVE", "node_name": "a", "node_uuid": None})
    {'OP_ID': 'OP_NODE_REMOVE', 'node_name': 'a'}
    """
    kind = OPERATIONS.get(str(opcode.get("OP_ID")))
    if kind is None:
        return opcode
    if kind is InstanceMultiAlloc:
        opcode = _plain_parts(opcode)
    found = _asked(opcode, kind)
    if "disks" in found:
        found["disks"] = _measured(found["disks"])
    for name in _sizes(kind):
        if isinstance(found.get(name), str):
            found[name] = parse_size(found[name])
    return found


def _asked(opcode: dict[str, Any], kind: type[Operation]) -> dict[str, Any]:
    """Return the fields that ask for something, or that nobody knows."""
    known, nullable = frozenset(kind.__struct_fields__), _nullable(kind)
    found: dict[str, Any] = {}
    for name, value in opcode.items():
        if name in known:
            if value is not None or name in nullable:
                found.setdefault(name, value)
        elif name in _UUIDS:
            other = next((one for one in _UUIDS[name] if one in known), name)
            if value:
                found[other] = value
        elif not _is_idle(name, value):
            found[name] = value
    return found


def _measured(value: Any) -> Any:  # noqa: ANN401
    """Return disks whose sizes are numbers, of MiB: some clients send ``10G``."""
    if isinstance(value, list):
        return [_measured(one) for one in value]
    size = value.get("size") if isinstance(value, dict) else None
    return value | {"size": parse_size(size)} if isinstance(size, str) else value


def _plain_parts(opcode: dict[str, Any]) -> dict[str, Any]:
    """Return a request for several instances, each without what asks for nothing."""
    create = {"OP_ID": InstanceCreate.op_id}
    parts = opcode.get("instances")
    found = parts if isinstance(parts, list) else []
    told = [plain(create | one) if isinstance(one, dict) else one for one in found]
    return opcode | ({"instances": told} if found else {})


def _is_idle(name: str, value: object) -> bool:
    """Whether a value of a field that an operation lacks asks for nothing."""
    if name in _DEFAULTS and value == _DEFAULTS[name]:
        return True
    return name in _DEFAULTS.keys() | _NULL and value in (None, {}, [])


@cache
def _sizes(kind: type[Operation]) -> frozenset[str]:
    """Return the fields that hold a size."""
    return frozenset(
        name for name, told in kinds_of(kind).items() if told.unit == "MiB"
    )


@cache
def _nullable(kind: type[Operation]) -> frozenset[str]:
    """Return the fields in which null is a value, or is to be refused as one."""
    return frozenset(one.name for one in fields(kind) if not _may_go(one))


def _may_go(one: FieldInfo) -> bool:
    if one.default is NODEFAULT and one.default_factory is NODEFAULT:
        return False
    try:
        convert(None, one.type)
    except ValidationError:
        return True
    return False
