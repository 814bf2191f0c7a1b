# SPDX-License-Identifier: BSD-2-Clause
"""A cloud with people: who may what in two projects, and how they ask."""

import pytest
from docks import Docks
from site_of_people import Site


@pytest.fixture
def site(docks: Docks) -> Site:
    """Return a cloud with two projects and somebody for each role."""
    return Site(docks)
