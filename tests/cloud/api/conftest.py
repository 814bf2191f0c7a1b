# SPDX-License-Identifier: BSD-2-Clause
"""A cloud with people: who may what in two projects, and how they ask."""

from collections.abc import Iterator

import pytest
from django.test import override_settings
from docks import Docks
from site_of_people import Site


@pytest.fixture(autouse=True, scope="session")
def quick_hashes() -> Iterator[None]:
    """Let a password be hashed in no time, as Django's pages advise for tests."""
    with override_settings(
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]
    ):
        yield


@pytest.fixture
def site(docks: Docks) -> Site:
    """Return a cloud with two projects and somebody for each role."""
    return Site(docks)
