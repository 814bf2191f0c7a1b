# SPDX-License-Identifier: BSD-2-Clause
"""The tables of an earlier version, and back to them: what is in them stays."""

import pytest
from django.core.management import call_command
from django.db import connection
from docks import Docks
from snf_manage import types

from moorage_cloud.models import Attachment, Operation, Volume
from moorage_cloud.verbs import NewVolume, attach, create, quota


def kept() -> list[object]:
    """Return what has to be the same before and after."""
    volumes = Volume.objects.order_by("pk").values_list(
        "uuid", "status", "size", "legacy_backend_volume_uuid", "generation"
    )
    places = Attachment.objects.values_list("volume", "server", "index")
    verbs = Operation.objects.values_list("uuid", "verb", "generation")
    return [*volumes, *places, *verbs, quota.usage("red")]


@pytest.mark.requirement("S1-37")
def test_the_tables_go_back_and_forward_with_what_is_in_them(docks: Docks):
    for server in ("a1", "b1"):
        one = create(docks.anna, NewVolume(size=2, volume_type=docks.type))
        attach(docks.anna, one, docks.servers[server])
        docks.settle()
    assert set(Volume.objects.values_list("legacy_backend_volume_uuid")) == {(None,)}
    longest = "x" * 128
    Volume.objects.filter(pk=one.pk).update(legacy_backend_volume_uuid=longest)
    before = kept()
    types("migrate cloud 0001", "-v0")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT legacy_backend_volume_uuid FROM cloud_volume "
            "WHERE legacy_backend_volume_uuid IS NOT NULL"
        )
        assert cursor.fetchall() == [(longest,)]
    types("migrate", "-v0")
    assert kept() == before
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
