# SPDX-License-Identifier: BSD-2-Clause
"""A backup of the database is put back; clusters and their guests went on meanwhile."""

from shutil import copyfile

import pytest
from django.db import connection
from quay import Quay
from snf_manage import types

from moorage_cloud.errors import BadRequest
from moorage_cloud.verbs import NewVolume, attach, create, detach, quota


def all_of(database: str) -> str:
    """Return the file with everything that is committed; nobody has it open."""
    connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return database


def test_the_clusters_say_where_volumes_are_before_anybody_asks(
    quay: Quay, database: str
):
    """One was attached since; one went from a cluster to another; one is left again."""
    new, gone, left = (
        create(quay.anna, NewVolume(size=1, volume_type=quay.type)) for _ in range(3)
    )
    for volume in (gone, left):
        attach(quay.anna, volume, quay.servers["a2"])
    quay.settle()
    backup = copyfile(all_of(database), f"{database}.yesterday")
    attach(quay.anna, new, quay.servers["a1"])
    for volume in (gone, left):
        detach(quay.anna, volume)
    quay.settle()
    attach(quay.anna, gone, quay.servers["b2"])
    quay.settle()
    copyfile(backup, all_of(database))

    assert types("reconcile-servers --fix-all").count("fixed") == 3
    assert quay.again(new).server == quay.servers["a1"]
    assert quay.again(gone).server == quay.servers["b2"]
    assert quay.again(left).server is None
    with pytest.raises(BadRequest, match="attached to a server already"):
        attach(quay.anna, new, quay.servers["b1"])
    assert list(quota.drifts()) == []
    assert "Everything is as it is" in types("reconcile-servers --fix-all")
    assert quay.towns.towns["b"].disks() == {gone.backend_volume_uuid}
