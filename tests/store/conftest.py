# SPDX-License-Identifier: BSD-2-Clause
"""A real etcd for all tests of stores; each test has a prefix of its own."""

import uuid
from collections.abc import Iterator

import pytest

from moorage.store.etcd import EtcdSettings
from support.etcd_members import Members, members


@pytest.fixture(scope="session")
def etcd_members() -> Iterator[Members]:
    with members() as found:
        yield found


@pytest.fixture
def etcd(etcd_members: Members) -> EtcdSettings:
    """Return where a store may be that nobody has used."""
    name = uuid.uuid4().hex
    return EtcdSettings(
        endpoints=tuple(etcd_members.clients),
        prefix=f"/tests/{name}",
        cluster=name,
        lease=3,
    )
