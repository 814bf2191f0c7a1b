# SPDX-License-Identifier: BSD-2-Clause
"""A cloud with people: who may what in two projects, and how they ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings
from docks import Docks
from openstack_clients import OpenStack, become, forget
from quay import Quay
from site_of_people import Site, served


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


@pytest.fixture
def harbour(quay: Quay) -> Site:
    """Return such a cloud over two clusters with real masters, doors and scripts."""
    return Site(quay)


@pytest.fixture
def door(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Serve the test's cloud; Anna is who the environment says."""
    name = "harbour" if "harbour" in request.fixturenames else "site"
    site: Site = request.getfixturevalue(name)
    forget(monkeypatch)
    with served() as address:
        become(site.anna, address, monkeypatch)
        yield address


@pytest.fixture
def openstack(door: str, tmp_path: Path) -> OpenStack:
    """Return the command ``openstack`` in front of the test's cloud."""
    assert door
    return OpenStack(tmp_path)
