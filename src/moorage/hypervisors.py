# SPDX-License-Identifier: BSD-2-Clause
"""The hypervisors that nodes can have, by their names."""

from moorage.errors import BadInput

KVM, FAKE = "kvm", "fake"
HYPERVISORS = (KVM, FAKE)
"""All of them; ``moorage.node.hypervisors.known`` makes each."""
SIMULATED = "sim"
"""What stands for one where the whole node is simulated."""
USUAL = KVM
"""What an instance, a node and a new cluster have that name none."""


def check_hypervisor(name: str) -> None:
    """Raise `BadInput` for a hypervisor that no node can have."""
    if name not in HYPERVISORS:
        known = " and ".join(HYPERVISORS)
        raise BadInput(f"there is no hypervisor '{name}': {known} are known")
