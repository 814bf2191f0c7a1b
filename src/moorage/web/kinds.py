# SPDX-License-Identifier: BSD-2-Clause
"""What is shown of each kind of objects: declared once, for tables and pages alike.

Titles, units and meanings of fields are the query's own.
"""

from collections.abc import Mapping
from typing import NamedTuple

Tones = Mapping[str, str]
"""How the words of a state look: ``good``, ``busy``, ``warn``, ``bad`` or ``quiet``."""


class Kind(NamedTuple):
    """A kind of objects.

    Attributes
    ----------
    name, many
        ``disk``, ``disks``; the first one is the resource of queries.
    columns
        Fields of the table; the first one names the object.
    facts
        Fields of the object's page, by the heading that they stand under.
    key
        The field that addresses end with.
    links
        Fields that name an object of a kind, or several.
    state
        The field that says how it is.
    tones
        Of the words of its states; those that are not here are ``bad``.
    command
        Lists the same.
    tagged
        Its word for tags; empty if it has none.
    more
        Fields that decide what may be done, besides.
    """

    name: str
    many: str
    columns: tuple[str, ...]
    facts: Mapping[str, tuple[str, ...]]
    command: str
    key: str = "name"
    links: Mapping[str, str] = {}
    state: str = ""
    tones: Tones = {}
    tagged: str = ""
    more: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields of the page of one, each once."""
        told = (one for group in self.facts.values() for one in group)
        named = (self.columns[0], self.key, *((self.state,) if self.state else ()))
        tags = ("tags",) if self.tagged else ()
        return tuple(dict.fromkeys((*named, *told, *tags, *self.more)))


TITLES: Mapping[str, str] = {
    "admin_state": "Should be",
    "alloc_policy": "Allocation",
    "be/maxmem": "Memory",
    "certificate_ends": "Certificate ends",
    "copy.lacks": "Lacks",
    "copy.why": "Why",
    "ctime": "Made",
    "ctotal": "Processors",
    "dev_type": "Template",
    "dfree": "Disk free",
    "disk_cnt": "Disks",
    "disk_list": "Disks",
    "disk_template": "Template",
    "disk_usage": "Disk",
    "dtotal": "Disk in all",
    "end_ts": "Ended",
    "external_reservations": "Kept free",
    "free_count": "Free",
    "group_list": "Groups",
    "groups": "Groups",
    "inst_list": "Instances",
    "iv_name": "Slot",
    "last_node": "Last node",
    "mac_prefix": "MAC prefix",
    "mfree": "Memory free",
    "mtime": "Changed",
    "mtotal": "Memory in all",
    "network_port": "Console port",
    "node_cnt": "Nodes",
    "node_list": "Nodes",
    "oper_ram": "Memory now",
    "oper_vcpus": "Processors now",
    "pinst_cnt": "Primary",
    "pinst_list": "Primary",
    "pip": "Address",
    "pnode": "Node",
    "pnode.group": "Group",
    "received_ts": "Received",
    "reserved_count": "Taken",
    "serial_no": "Changes",
    "sinst_cnt": "Secondary",
    "sinst_list": "Secondary",
    "sip": "Second address",
    "snodes": "Second node",
    "status.reason": "Why",
    "vcpus": "Processors",
    "volume_name": "Names of volumes",
}
"""Of fields whose own titles are words of programs: Ganeti's clients read those."""
_KEPT = ("uuid", "serial_no", "ctime", "mtime")
INSTANCE = Kind(
    "instance",
    "instances",
    (
        *("name", "status", "pnode", "snodes", "os"),
        *("vcpus", "be/maxmem", "disk_usage", "tags"),
    ),
    {
        "State": ("status", "status.reason", "admin_state", "oper_ram", "oper_vcpus"),
        "Place": ("pnode", "pnode.group", "snodes"),
        "Size": ("vcpus", "be/maxmem", "disk_usage", "disk_template"),
        "System": ("os", "hypervisor", "network_port"),
        "Record": _KEPT,
    },
    "gnt-instance list",
    links={"pnode": "node", "snodes": "node", "pnode.group": "group"},
    state="status",
    tones={
        **dict.fromkeys(("running",), "good"),
        **dict.fromkeys(("paused",), "warn"),
        **dict.fromkeys(("ADMIN_down", "USER_down", "ADMIN_offline"), "quiet"),
    },
    tagged="instance",
)
DISK = Kind(
    "disk",
    "disks",
    ("name", "status", "size", "instance", "node", "pool", "dev_type", "provider"),
    {
        "State": ("status", "quarantine", "behind", "mode"),
        "Owner": ("instance", "iv_name", "epoch"),
        "Place": ("node", "nodes", "last_node", "group"),
        "Storage": (
            *("size", "dev_type", "provider", "pool", "volume", "params", "presets"),
        ),
        "Record": _KEPT,
    },
    "gnt-disk list",
    key="uuid",
    links={
        "instance": "instance",
        "pool": "pool",
        "group": "group",
        **dict.fromkeys(("node", "nodes", "last_node"), "node"),
    },
    state="status",
    tones={"attached": "good", "detached": "quiet"},
    tagged="disk",
)
NODE = Kind(
    "node",
    "nodes",
    (
        *("name", "role", "group", "pinst_cnt", "sinst_cnt"),
        *("mfree", "mtotal", "dfree", "dtotal", "version"),
    ),
    {
        "State": ("role", "offline", "drained", "silence", "powered"),
        "Instances": ("pinst_list", "sinst_list"),
        "Machine": ("ctotal", "mtotal", "mfree", "dtotal", "dfree", "accelerator"),
        "Copy of the state": ("copy", "copy.why", "copy.lacks", "certificate_ends"),
        "Place": ("group", "pip", "sip"),
        "Record": ("version", *_KEPT),
    },
    "gnt-node list",
    links={"group": "group", "pinst_list": "instance", "sinst_list": "instance"},
    state="role",
    tones={"M": "good", "C": "good", "R": "good", "D": "warn", "O": "bad"},
    tagged="node",
    more=("storage",),
)
GROUP = Kind(
    "group",
    "groups",
    ("name", "node_cnt", "pinst_cnt", "alloc_policy", "tags"),
    {
        "Members": ("node_list", "pinst_list"),
        "Policy": ("alloc_policy",),
        "Record": _KEPT,
    },
    "gnt-group list",
    links={"node_list": "node", "pinst_list": "instance"},
    tagged="nodegroup",
)
NETWORK = Kind(
    "network",
    "networks",
    ("name", "network", "gateway", "free_count", "reserved_count", "group_list"),
    {
        "Addresses": (
            *("network", "gateway", "network6", "gateway6", "mac_prefix"),
            *("free_count", "reserved_count", "external_reservations"),
        ),
        "Who uses it": ("group_list", "inst_list"),
        "Record": _KEPT,
    },
    "gnt-network list",
    links={"inst_list": "instance"},
    tagged="network",
)
POOL = Kind(
    "pool",
    "pools",
    ("name", "template", "provider", "groups", "disk_cnt", "size", "free", "total"),
    {
        "Storage": ("template", "provider", "params", "volume_name"),
        "Room": ("free", "total", "size", "disk_cnt"),
        "Reach": ("groups",),
        "Disks": ("disk_list",),
        "Record": _KEPT,
    },
    "gnt-storage pool list",
    links={"groups": "group", "disk_list": "disk"},
    tagged="pool",
)
JOB = Kind(
    "job",
    "jobs",
    ("id", "status", "summary", "caller", "received_ts", "end_ts"),
    {},
    "gnt-job list",
    key="id",
    state="status",
    tones={
        "success": "good",
        **dict.fromkeys(("running", "waiting", "canceling"), "busy"),
        **dict.fromkeys(("queued", "canceled"), "quiet"),
    },
)
KINDS: Mapping[str, Kind] = {
    one.name: one for one in (INSTANCE, DISK, NODE, GROUP, NETWORK, POOL, JOB)
}
"""By name."""
