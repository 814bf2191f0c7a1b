# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti, unpacked once a session."""

import os

import pytest

from ganetis_files import PACKAGES, Ganeti
from peers import unpacked


@pytest.fixture(scope="session")
def ganeti() -> Ganeti:
    place = unpacked(PACKAGES)
    if place is None:
        if os.environ.get("CI"):
            pytest.fail("Ganeti's packages cannot be had")
        pytest.skip("Ganeti's packages cannot be had")
    return Ganeti(place)
