# SPDX-License-Identifier: BSD-2-Clause
"""Every column of Ganeti's is here, under its title and of its kind."""

import pytest

from ganetis_files import Ganeti
from moorage.api.query import resource_named

RESOURCES = ("export", "filter", "group", "instance", "job", "lock", "network", "node")


@pytest.mark.parametrize("resource", RESOURCES)
def test_columns_are_ganetis(ganeti: Ganeti, resource: str) -> None:
    theirs = ganeti.columns(resource)
    found = {name: resource_named(resource).find(name) for name in theirs}
    assert {name: [one.title, one.kind] for name, one in found.items()} == theirs
    listed = {one.name for one in resource_named(resource).all_fields()}
    slots = {name for name in theirs if name.rpartition("/")[2].isdecimal()}
    assert theirs.keys() - listed - slots == set()


def test_no_other_parameter_is_a_column() -> None:
    assert resource_named("instance").find("hv/acpy").kind == "unknown"
    assert resource_named("node").find("ndp/speed").kind == "unknown"
