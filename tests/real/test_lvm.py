# SPDX-License-Identifier: BSD-2-Clause
"""Logical volumes of real LVM, on nodes that are guests."""

from typing import Any

import pytest

pytestmark = pytest.mark.real


def test_nodes_have_a_kernel_with_device_mapper_and_drbd(hamlet: Any) -> None:
    assert len(hamlet.ask("gnt-node list -o name")) == len(hamlet.nodes)
    for number, node in enumerate(hamlet.nodes):
        assert hamlet.volumes(number) == {}
        assert "version: 8" in node.run("cat /proc/drbd")
