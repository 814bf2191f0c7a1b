# SPDX-License-Identifier: BSD-2-Clause
"""Tables and sentences, in the shape that Ganeti's tools print them."""

from collections.abc import Callable, Sequence
from typing import Final

from moorage.htools.formats.text import shown
from moorage.htools.inst import NOWHERE, Inst
from moorage.htools.metrics import METRICS, measure
from moorage.htools.node import Node
from moorage.htools.policy import Policy, Spec
from moorage.htools.state import State
from moorage.htools.words import TEMPLATES, fixed, ratio

Show = Callable[[Node], str]


def table(
    rows: Sequence[Sequence[str]], numeric: Sequence[bool], indent: str = ""
) -> str:
    """Return rows as aligned lines; numbers stand to the right.

    >>> print(table([["a", "n"], ["bb", "10"]], [False, True]), end="")
     a   n
     bb 10
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append(f"{indent} {' '.join(cells)}\n")
    return "".join(lines)


def _status(node: Node) -> str:
    if node.offline:
        return "-"
    return "*" if node.fails_n1 else " "


def _pairs(counts: dict[str, int]) -> str:
    return ",".join(f"{tag}={counts[tag]}" for tag in sorted(counts))


def _peers(node: Node) -> str:
    pairs = sorted(node.peers.items())
    return "[" + ",".join(f"({at},{mem})" for at, mem in pairs) + "]"


def _indices(places: Sequence[int]) -> str:
    return "[" + ",".join(map(str, places)) + "]"


COLUMNS: Final[dict[str, tuple[str, bool, Show]]] = {
    "idx": ("Index", True, lambda n: f"{n.idx:4d}"),
    "name": ("Name", False, lambda n: n.alias),
    "fqdn": ("Name", False, lambda n: n.name),
    "status": ("F", False, _status),
    "tmem": ("t_mem", True, lambda n: fixed(n.mem_total, 0).rjust(5)),
    "nmem": ("n_mem", True, lambda n: f"{n.mem_own:5d}"),
    "imem": ("i_mem", True, lambda n: f"{n.mem_inst:5d}"),
    "xmem": ("x_mem", True, lambda n: f"{n.mem_missing:5d}"),
    "fmem": ("f_mem", True, lambda n: f"{n.mem_free:5d}"),
    "umem": ("u_mem", True, lambda n: f"{n.unallocated:5d}"),
    "amem": ("a_mem", True, lambda n: f"{n.available:5d}"),
    "rmem": ("r_mem", True, lambda n: f"{n.reserved:5d}"),
    "tdsk": ("t_dsk", True, lambda n: fixed(n.disk_total / 1024, 0).rjust(5)),
    "fdsk": ("f_dsk", True, lambda n: f"{n.disk_free // 1024:5d}"),
    "tcpu": ("pcpu", True, lambda n: fixed(n.cpus, 0).rjust(4)),
    "ucpu": ("vcpu", True, lambda n: f"{n.cpu_used:4d}"),
    "pcnt": ("pcnt", True, lambda n: f"{len(n.primaries):3d}"),
    "scnt": ("scnt", True, lambda n: f"{len(n.secondaries):3d}"),
    "plist": ("primaries", True, lambda n: _indices(n.primaries)),
    "slist": ("secondaries", True, lambda n: _indices(n.secondaries)),
    "pfmem": (
        "p_fmem",
        True,
        lambda n: fixed(ratio(n.unallocated, n.mem_total), 4).rjust(6),
    ),
    "pfdsk": ("p_fdsk", True, lambda n: fixed(n.disk_share, 4).rjust(6)),
    "rcpu": ("r_cpu", True, lambda n: fixed(ratio(n.cpu_used, n.cpus), 2).rjust(5)),
    "cload": ("lCpu", True, lambda n: fixed(n.load[0], 3).rjust(5)),
    "mload": ("lMem", True, lambda n: fixed(n.load[1], 3).rjust(5)),
    "dload": ("lDsk", True, lambda n: fixed(n.load[2], 3).rjust(5)),
    "nload": ("lNet", True, lambda n: fixed(n.load[3], 3).rjust(5)),
    "ptags": ("PrimaryTags", False, lambda n: _pairs(n.excl)),
    "peermap": ("PeerMap", False, _peers),
    "spindle_count": ("NodeSpindles", True, lambda n: str(n.spindles)),
    "hi_spindles": ("MaxSpindles", True, lambda n: shown(n.spindle_limit)),
    "inst_spindles": ("InstSpindles", True, lambda n: shown(n.spindles_used)),
}
"""Field -> heading, whether it is a number, how a node shows it."""

DEFAULT_COLUMNS: Final = [
    "status",
    "name",
    "tmem",
    "nmem",
    "imem",
    "xmem",
    "fmem",
    "umem",
    "rmem",
    "tdsk",
    "fdsk",
    "tcpu",
    "ucpu",
    "pcnt",
    "scnt",
    "pfmem",
    "pfdsk",
    "rcpu",
    "cload",
    "mload",
    "dload",
    "nload",
]
UNKNOWN: Final = "<unknown field>"


def node_table(nodes: Sequence[Node], fields: str = "") -> str:
    """Return nodes as a table.

    Parameters
    ----------
    fields
        Names with commas between; a leading ``+`` adds to the usual ones.
    """
    names = fields.split(",") if fields else []
    if not names:
        names = DEFAULT_COLUMNS
    elif names[0].startswith("+"):
        first = names[0].removeprefix("+")
        names = [*DEFAULT_COLUMNS, *([first] if first else []), *names[1:]]
    columns = [COLUMNS.get(name, (UNKNOWN, False, lambda _: UNKNOWN)) for name in names]
    rows = [[heading for heading, _, _ in columns]]
    rows += [[show(node) for _, _, show in columns] for node in nodes]
    return table(rows, [right for _, right, _ in columns])


def instance_table(state: State) -> str:
    """Return the instances in question as a table."""
    rows = [
        [
            "F",
            "Name",
            "Pri_node",
            "Sec_node",
            "Auto_bal",
            "vcpu",
            "mem",
            "dsk",
            "lCpu",
            "lMem",
            "lDsk",
            "lNet",
        ],
        *([*_instance_row(state, inst)] for inst in state.people),
    ]
    return table(rows, [False] * 5 + [True] * 7)


def _instance_row(state: State, inst: Inst) -> list[str]:
    return [
        "R" if inst.is_running else " ",
        inst.name,
        state.nodes[inst.p].name,
        "" if inst.s == NOWHERE else state.nodes[inst.s].name,
        "Y" if inst.auto_balance else "N",
        f"{inst.vcpus:3d}",
        f"{inst.mem:5d}",
        f"{inst.dsk // 1024:5d}",
        *(fixed(load, 3).rjust(5) for load in inst.load),
    ]


def metric_table(nodes: Sequence[Node], indent: str = "  ") -> str:
    """Return each metric with its value and weight."""
    rows = [["Field", "Value", "Weight"]]
    rows += [
        [metric.name, fixed(value, 8), "x" + fixed(metric.weight, 2)]
        for metric, value in zip(METRICS, measure(nodes), strict=False)
    ]
    return table(rows, [False, True, True], indent)


_TEMPLATE_WORDS: Final = {name: f"DT{name.capitalize()}" for name in TEMPLATES} | {
    "sharedfile": "DTSharedFile",
    "blockdev": "DTBlock",
    "drbd": "DTDrbd8",
}


def policy_text(policy: Policy) -> str:
    """Return a policy in the record notation that -vv prints."""
    ranges = ",".join(
        f"MinMaxISpecs {{minMaxISpecsMinSpec = {_spec_text(low)}, "
        f"minMaxISpecsMaxSpec = {_spec_text(high)}}}"
        for low, high in policy.ranges
    )
    templates = ",".join(_TEMPLATE_WORDS[name] for name in policy.templates)
    return (
        f"IPolicy {{iPolicyMinMaxISpecs = [{ranges}], "
        f"iPolicyStdSpec = {_spec_text(policy.standard)}, "
        f"iPolicyDiskTemplates = [{templates}], "
        f"iPolicyVcpuRatio = {shown(policy.vcpu_ratio)}, "
        f"iPolicySpindleRatio = {shown(policy.spindle_ratio)}}}"
    )


def _spec_text(spec: Spec) -> str:
    return (
        f"ISpec {{iSpecMemorySize = {spec.memory}, iSpecCpuCount = {spec.cpus}, "
        f"iSpecDiskSize = {spec.disk}, iSpecDiskCount = {spec.disks}, "
        f"iSpecNicCount = {spec.nics}, iSpecSpindleUse = {spec.spindles}}}"
    )
