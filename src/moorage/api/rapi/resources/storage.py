# SPDX-License-Identifier: BSD-2-Clause
"""What disks are kept in: providers, pools, and the storage units of nodes."""

from typing import Any

from moorage.api.rapi.looking import COMMON, get, listed, rows
from moorage.api.rapi.making import make
from moorage.api.rapi.route import Asked, Route
from moorage.ops import OPERATIONS

from .jobs import result_of
from .tagging import tags

_POOL_FIELDS = (
    *("name", "template", "driver", "provider", "params", "volume_name", "longest"),
    *("groups", "total", "free", "size", "disk_cnt", "disk_list", *COMMON),
)
_POOLS = "/2/storage/pools"
_POOL = f"{_POOLS}/{{pool_name}}"
_PROVIDER = ("name", "node_status", "nodegroup_status", "parameters")


async def _providers(asked: Asked) -> list[dict[str, Any]]:
    """Return the providers of the nodes, by a job that is awaited."""
    asks = {"OP_ID": "OP_EXT_STORAGE_DIAGNOSE", "output_fields": _PROVIDER}
    found = await result_of(asked, await asked.submit(asks))
    return [dict(zip(_PROVIDER, row, strict=True)) for row in found]


async def _units(asked: Asked) -> list[dict[str, Any]]:
    """Return the units of each node that answers."""
    found = await rows(asked, "node", ["name", "storage"])
    return [{"node": node, **unit} for node, units in found for unit in units or ()]


ROUTES: tuple[Route, ...] = (
    get(
        "/2/storage/providers",
        "List the ExtStorage providers, and where they are valid",
        _providers,
        answer=list[dict[str, Any]],
        role=OPERATIONS["OP_EXT_STORAGE_DIAGNOSE"].role,
    ),
    get(
        "/2/storage/units",
        "List the storage units of the nodes, with what is free in them, in MiB",
        _units,
        answer=list[dict[str, Any]],
    ),
    *listed(_POOLS, "pool", _POOL_FIELDS),
    make("POST", _POOLS, "OP_STORAGE_POOL_ADD"),
    make("DELETE", _POOL, "OP_STORAGE_POOL_REMOVE"),
    make("PUT", f"{_POOL}/modify", "OP_STORAGE_POOL_SET_PARAMS"),
    make("PUT", f"{_POOL}/connect", "OP_STORAGE_POOL_CONNECT"),
    make("PUT", f"{_POOL}/disconnect", "OP_STORAGE_POOL_DISCONNECT"),
    *tags(_POOL, "pool"),
)
