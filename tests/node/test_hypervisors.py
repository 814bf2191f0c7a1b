# SPDX-License-Identifier: BSD-2-Clause
"""Each hypervisor that a cluster can enable, a node can make."""

from moorage.hypervisors import HYPERVISORS
from moorage.node.hypervisors.known import MAKERS


def test_every_hypervisor_is_made_by_something() -> None:
    assert tuple(MAKERS) == HYPERVISORS
