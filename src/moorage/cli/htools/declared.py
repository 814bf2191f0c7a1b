# SPDX-License-Identifier: BSD-2-Clause
"""The options that the planner's programs share, each declared once."""

from typing import Final

from moorage.cli.declaration import Option
from moorage.cli.htools.values import number, whole
from moorage.units import LARGEST

VERSION: Final = Option(("-V", "--version"), "show the version")
COMPLETION: Final = Option(("--help-completion",), "show what completion offers")
HELP: Final = Option(("-h", "--help"), "show this")
ASKED: Final = (VERSION, COMPLETION, HELP)
"""Options of every program that are answered instead of any work."""

TEXT: Final = Option(
    ("-t", "--text-data"),
    "read the cluster from a file in the text format",
    "FILE",
    dest="text",
)
RAPI: Final = Option(
    ("-m", "--master"),
    "ask the cluster at this address over RAPI; file://DIR reads saved answers",
    "ADDRESS",
    dest="rapi",
)
LUXI: Final = Option(
    ("-L", "--luxi"),
    "ask the master on this machine; a socket other than the usual one is glued on",
    "SOCKET",
    glued=True,
)
IALLOC: Final = Option(
    ("-I", "--ialloc-src"),
    "read the cluster from a message to an allocator",
    "FILE",
    dest="ialloc",
)
KVM_MEMORY: Final = Option(
    ("--static-kvm-node-memory",),
    "MiB that the system of a KVM node uses; 0 for what the node reports",
    "N",
    whole(most=LARGEST),
    4096,
    dest="kvm_memory",
)
SOURCES: Final = (TEXT, RAPI, LUXI, IALLOC, KVM_MEMORY)
"""Where a cluster comes from."""
SIMULATE: Final = Option(
    ("--simulate",),
    "plan on an empty group instead: policy,nodes,disk,memory,cpus; repeat it for "
    "several",
    "SPEC",
    repeats=True,
)

VERBOSE: Final = Option(
    ("-v", "--verbose"), "say more; repeat it for more still", counts=True
)
QUIET: Final = Option(("-q", "--quiet"), "say less", counts=True)
LEVELS: Final = (VERBOSE, QUIET)

PRINT_NODES: Final = Option(
    ("-p", "--print-nodes"),
    "print the nodes before and after; FIELDS names columns, with + before them to "
    "add to the usual ones",
    "FIELDS",
    glued=True,
)
PRINT_INSTANCES: Final = Option(
    ("--print-instances",), "print the instances before and after"
)
PRINT_COMMANDS: Final = Option(
    ("-C", "--print-commands"),
    "print the gnt-* commands that make the plan, or write them to a script",
    "SCRIPT",
    glued=True,
)
SAVE: Final = Option(
    ("-S", "--save"),
    "write the cluster before and after to files, PREFIX with endings",
    "PREFIX",
)
NO_HEADERS: Final = Option(("--no-headers",), "print no headings")
MACHINE: Final = Option(
    ("--machine-readable",),
    "print KEY=value lines for programs (yes or no; yes without a word)",
    "CHOICE",
    glued=True,
    dest="machine",
)
EXECUTE: Final = Option(
    ("-X", "--exec"), "carry the plan out: submit its jobs over LUXI", dest="execute"
)

OFFLINE: Final = Option(
    ("-O", "--offline"), "plan as if this node were offline", "NODE", repeats=True
)
GROUP: Final = Option(
    ("-G", "--group"), "work on this node group, by name or UUID", "ID"
)
MAX_LENGTH: Final = Option(
    ("-l", "--max-length"),
    "stop after so many steps or new instances; negative for no limit",
    "N",
    whole(),
    -1,
)
MIN_SCORE: Final = Option(
    ("-e", "--min-score"),
    "stop when the score is this near to the least possible one",
    "EPSILON",
    number(),
    1e-9,
)
MIN_GAIN: Final = Option(
    ("-g", "--min-gain"),
    "least gain of a step below --min-gain-limit",
    "DELTA",
    number(),
    0.01,
)
MIN_GAIN_LIMIT: Final = Option(
    ("--min-gain-limit",),
    "score above which any gain is good enough",
    "SCORE",
    number(),
    0.1,
)
MAX_CPU: Final = Option(
    ("--max-cpu",),
    "most virtual processors on one processor, instead of what the policy says",
    "RATIO",
    number(0, 2**31),
)
MIN_DISK: Final = Option(
    ("--min-disk",),
    "share of a node's disk to leave free, from 0 to 1",
    "RATIO",
    number(0, 1),
    0.0,
)
NO_DISK_MOVES: Final = Option(
    ("--no-disk-moves",), "copy no disks: fail over and migrate only"
)
NO_INSTANCE_MOVES: Final = Option(
    ("--no-instance-moves",),
    "leave primaries where they are: replace secondaries only",
)
EVAC_MODE: Final = Option(
    ("-E", "--evac-mode"),
    "move only instances that have a node offline or drained",
)
RESTRICTED: Final = Option(
    ("--restricted-migration",),
    "migrate off offline and drained nodes only",
    dest="restricted",
)
IGNORE_SOFT_ERRORS: Final = Option(
    ("--ignore-soft-errors",), "skip the checks that protect comfort only"
)
NO_CAPACITY_CHECKS: Final = Option(
    ("--no-capacity-checks",), "do not ask whether every node can be lost"
)
SELECT: Final = Option(
    ("--select-instances",),
    "move only these instances (names with commas between)",
    "INSTS",
    default="",
    dest="select",
)
EXCLUDE: Final = Option(
    ("--exclude-instances",),
    "move any but these instances (names with commas between)",
    "INSTS",
    default="",
    dest="exclude",
)
EXCLUSION_TAGS: Final = Option(
    ("--exclusion-tags",),
    "keep instances apart that share a tag with one of these prefixes",
    "TAG,...",
    default="",
)
BALANCING: Final = (
    NO_DISK_MOVES,
    NO_INSTANCE_MOVES,
    EVAC_MODE,
    MAX_LENGTH,
    MIN_SCORE,
    MIN_GAIN,
    MIN_GAIN_LIMIT,
    MAX_CPU,
    MIN_DISK,
    IGNORE_SOFT_ERRORS,
    NO_CAPACITY_CHECKS,
    OFFLINE,
    SELECT,
    EXCLUDE,
    EXCLUSION_TAGS,
)
"""What balancing may do."""

DYNU: Final = Option(
    ("-U", "--dynu-file"),
    "read measured load from a file: name cpu mem disk net",
    "FILE",
    dest="dynu",
)
IGNORE_DYNU: Final = Option(
    ("--ignore-dynu",), "count no load at all, neither measured nor even"
)
MOND: Final = Option(
    ("--mond",),
    "ask the monitoring daemons for the load (yes or no; yes without a word)",
    "CHOICE",
    glued=True,
)
MOND_DATA: Final = Option(
    ("--mond-data",), "read what the monitoring daemons said from a file", "FILE"
)
MOND_XEN: Final = Option(
    ("--mond-xen",), "use the load of each instance, which daemons on Xen tell"
)
MOND_EXIT: Final = Option(
    ("--exit-on-missing-mond-data",),
    "end if the daemon of a node says nothing",
    dest="mond_exit",
)

EXPLAIN: Final = Option(
    ("--explain",),
    "say what refuses, with its numbers, and the smallest change that helps",
)
HTML: Final = Option(("--html",), "draw the result into a file", "FILE")
LOOKAHEAD: Final = Option(
    ("--lookahead",),
    "where no single move gains, go on with pairs of moves that gain --min-gain "
    "together",
)
COMPACT: Final = Option(
    ("--compact",),
    "print the plan when it is whole, with repeated moves of an instance made one "
    "wherever every step stays safe",
)
COST: Final = Option(
    ("--cost",),
    "say what each step and the plan copy: disks, and memory of running instances",
)
SURVIVE: Final = Option(
    ("--survive",),
    "print where everybody restarts after the loss of each node or pool",
    "FORM",
    choices=("text", "json"),
    bare="text",
    glued=True,
)
OURS: Final = (EXPLAIN, HTML, LOOKAHEAD, COMPACT, COST, SURVIVE)
"""What Ganeti's tools do not have; these take no abbreviation from those that do."""
