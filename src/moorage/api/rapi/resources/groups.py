# SPDX-License-Identifier: BSD-2-Clause
"""Node groups and networks."""

from moorage.api.rapi.looking import COMMON, listed
from moorage.api.rapi.making import FORCE, make
from moorage.api.rapi.route import Route

from .tagging import tags

_GROUP_FIELDS = (
    *("alloc_policy", "name", "node_cnt", "node_list", "ipolicy", "custom_ipolicy"),
    *("diskparams", "custom_diskparams", "ndparams", "custom_ndparams", *COMMON),
)
_NETWORK_FIELDS = (
    *("name", "network", "gateway", "network6", "gateway6", "mac_prefix"),
    *("free_count", "reserved_count", "map", "group_list", "inst_list"),
    *("external_reservations", *COMMON),
)
_GROUP = "/2/groups/{group_name}"
_NETWORK = "/2/networks/{network_name}"
_CUSTOM = {f"custom_{one}": one for one in ("ndparams", "ipolicy", "diskparams")}

GROUPS: tuple[Route, ...] = (
    *listed("/2/groups", "group", _GROUP_FIELDS, "name"),
    make("POST", "/2/groups", "OP_GROUP_ADD", renames={"name": "group_name"}),
    make("DELETE", _GROUP, "OP_GROUP_REMOVE"),
    make("PUT", f"{_GROUP}/modify", "OP_GROUP_SET_PARAMS", renames=_CUSTOM),
    make("PUT", f"{_GROUP}/rename", "OP_GROUP_RENAME"),
    make("PUT", f"{_GROUP}/assign-nodes", "OP_GROUP_ASSIGN_NODES", FORCE),
    *tags(_GROUP, "nodegroup"),
)
NETWORKS: tuple[Route, ...] = (
    *listed("/2/networks", "network", _NETWORK_FIELDS, "name"),
    make("POST", "/2/networks", "OP_NETWORK_ADD", renames={"name": "network_name"}),
    make("DELETE", _NETWORK, "OP_NETWORK_REMOVE"),
    make("PUT", f"{_NETWORK}/connect", "OP_NETWORK_CONNECT"),
    make("PUT", f"{_NETWORK}/disconnect", "OP_NETWORK_DISCONNECT"),
    make("PUT", f"{_NETWORK}/modify", "OP_NETWORK_SET_PARAMS"),
    make("PUT", f"{_NETWORK}/rename", "OP_NETWORK_RENAME"),
    *tags(_NETWORK, "network"),
)
