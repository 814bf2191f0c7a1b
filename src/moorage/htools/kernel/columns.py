# SPDX-License-Identifier: BSD-2-Clause
"""What stands where in the rows; `setup.py` says the same to the compiler."""

W = 29
"""Columns of a node; memory and disk in MiB."""
MEM = 0
FREE = 1  # memory that nobody has
KEPT = 2  # memory reserved for failover
UNSAFE = 3  # 1 where the free memory does not cover it
DISK = 4  # free
DISKS = 5  # in all
FLOOR = 6
CPU = 7
CPUS = 8
SPEED = 9
RATIO = 10  # virtual processors allowed for each real one, negative for any
SPINDLES = 11
SPINDLE_LIMIT = 12
LOAD = 13  # and three more
MAINS = 17  # instances that run here
COPIES = 18  # instances that have their second copy here
OFFLINE = 19
FREE_ALL = 20  # these four count instances that are only planned
DISK_ALL = 21
CPU_ALL = 22
SPINDLES_ALL = 23
EXCLUSIVE = 24  # 1 under exclusive storage
WHOLE = 25  # spindles that are free then
WHOLE_ALL = 26
WHOLES = 27  # in all
UNITS = 28  # 1 where the node lists its storage units

IW = 22
"""Columns of an instance."""
I_MEM = 0
I_DISK = 1  # of its nodes, not of shared storage
I_CPU = 2
I_SPINDLES = 3  # likewise
I_RUNS = 4  # memory where it runs
I_KEEPS = 5  # memory reserved where its second copy is
I_LOCAL = 6  # 1 where its disks are on its nodes
I_P = 7
I_S = 8
I_LOAD = 9  # and three more
I_TAG = 13  # where its tags start
I_TAGS = 14  # how many they are
I_VERBS = 15  # one bit each
I_REAL = 16  # 0 where it is only planned
I_WHOLE = 17  # spindles under exclusive storage, -1 where unknown
I_LOCATION = 18  # failure domains that its two nodes share
I_WISHES = 19  # how many locations it desires
I_WANT = 20  # where its wants of storage units start
I_WANTS = 21  # how many they are

SW = 10
"""Columns of a share: what the value of a metric is, as the table of metrics says it.

The nodes' values of the shares are followed by the free share of each storage unit.
"""
S_OF = 0  # column of the node
S_PER = 1  # what divides it, -1 for nothing
S_BY = 2  # and that again
S_MAIN = 3  # column of an instance: what it changes where it runs, -1 for nothing
S_COPY = 4  # and where its second copy is
S_SIGN = 5  # -1 where it shrinks
S_PLANNED = 6  # 1 where it counts who is only planned
S_SPREAD = 7  # the metric that is its spread, -1 for none
S_SUM = 8  # the metric that is its sum
S_UNITS = 9  # 1 where the mean over storage units takes its place

F, FA, R, RF, FRF, FR = range(6)
"""The verbs of `moorage.htools.moves`."""

CAN_F, CAN_FA, CAN_R, CAN_RF, CAN_FRF, CAN_FR = 1, 2, 4, 8, 16, 32
"""Which of them an instance may use, one bit each."""
HOSTING = 26
"""Verbs after which the target runs the instance: FA, RF, FRF."""
KEEPING = 36
"""Verbs after which the target keeps the second copy: R, FR."""
THROUGH = 48
"""Verbs that first fail over to the secondary: FRF, FR."""

G_UNSAFE = 2  # instances on nodes that fail N+1
G_OFF_ALL = 4
G_OFF_PRI = 5
G_TAGS = 11
G_APART = 17  # location tags
G_DOMAINS = 18  # exclusion tags by location
G_RESERVED = 19
"""Where those metrics stand that the kernel counts itself, but for the last."""

T_PEERS = 9
T_ROWS = 18
"""A walk's trail: three nodes, six counts; from there the peers, then the rows."""

ABSENT, COUNTED, BOUNDLESS = range(3)
"""What a storage unit is on a node: not there, with room of its own, or without."""
NO_MEMORY, NO_DISK, NO_CPU, NO_N1, NO_TAGS = 1, 2, 3, 4, 5
NO_MIGRATION, NO_DISK_COUNT, NO_SPINDLES, NO_INTERNAL = 6, 7, 8, 9
"""Refusals: places in `moorage.htools.constants.Fail`, counted from 1."""
ROOM = 4096
"""Candidates that are kept at most."""
NEAR = 1e-7
"""How far from the best a rough score may be and still win."""
HUGE = 1e300
"""The score of what is not allowed."""
