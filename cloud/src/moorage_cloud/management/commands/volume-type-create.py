# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-type-create``: a kind of volume, and where its data is."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from moorage_cloud.errors import BadRequest
from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.providers import check_provider
from moorage_cloud.management.words import pairs
from moorage_cloud.models import VolumeType
from moorage_cloud.verbs import make_default


class Command(CloudCommand):
    """Make a type."""

    help = "Make a volume type."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what it is."""
        parser.add_argument("-n", "--name", required=True)
        parser.add_argument(
            "--disk-template", required=True, help="of a provider: ext_PROVIDER"
        )
        parser.add_argument("--pool", default="", help="a storage pool of each cluster")
        parser.add_argument("--domain", help="storage that several clusters see")
        parser.add_argument(
            "--specs", default="", help="KEY=VALUE,…; GNT-EXTP:KEY is the provider's"
        )
        parser.add_argument("--description", default="")
        parser.add_argument("--not-detachable", action="store_true")
        parser.add_argument("--default", action="store_true")
        parser.add_argument("--private", action="store_true")

    def go(self, options: Mapping[str, Any]) -> None:
        """Make it."""
        kind = VolumeType(
            name=options["name"],
            description=options["description"],
            disk_template=options["disk_template"],
            pool=options["pool"],
            domain=find.domain(options["domain"]) if options["domain"] else None,
            detachable=not options["not_detachable"],
            is_public=not options["private"],
            specs=dict(pairs(options["specs"])),
        )
        if VolumeType.objects.filter(name=kind.name, deleted=False).exists():
            raise BadRequest(f"there is a volume type '{kind.name}' already")
        if kind.detachable and not kind.provider:
            raise BadRequest(
                f"volumes of disk template '{kind.disk_template}' cannot leave a "
                "cluster: a type for them is made with --not-detachable"
            )
        if kind.provider and not kind.pool:
            check_provider(kind, self.tell)
        with transaction.atomic():
            kind.save()
            if options["default"]:
                make_default(kind)
        self.tell(f"Created volume type '{kind.name}' with ID {kind.pk}")
