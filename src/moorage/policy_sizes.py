# SPDX-License-Identifier: BSD-2-Clause
"""The sizes of an instance that policies bound, and the bounds that hold by default.

One table, for policies, the planner and its formats alike; their order is Ganeti's.
"""

from typing import NamedTuple


class PolicySize(NamedTuple):
    """One size of an instance.

    Attributes
    ----------
    name
        In a policy.
    field
        In the planner's `moorage.htools.policy.Spec`.
    least, most, standard
        Bounds and standard of the default policy.
    is_size
        Whether it is MiB; else a count.
    """

    name: str
    field: str
    least: int
    most: int
    standard: int
    is_size: bool = False


POLICY_SIZES = (
    PolicySize("memory-size", "memory", 128, 32768, 128, is_size=True),
    PolicySize("cpu-count", "cpus", 1, 8, 1),
    PolicySize("disk-size", "disk", 1, 1048576, 1024, is_size=True),
    PolicySize("disk-count", "disks", 1, 16, 1),
    PolicySize("nic-count", "nics", 0, 8, 1),
    PolicySize("spindle-use", "spindles", 1, 12, 1),
)
VCPU_RATIO, SPINDLE_RATIO = 4.0, 32.0
"""How many of instances' share one of a node's, by default."""
