# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage volume-type-modify``: a type gets other words, or other specs."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.words import pairs
from moorage_cloud.verbs import drop_spec, make_default, set_specs, update_type


class Command(CloudCommand):
    """Change a type; where its data is stays."""

    help = "Change a volume type. Where its volumes' data is, stays."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what is to be different."""
        parser.add_argument("volume_type", help="its ID or name")
        parser.add_argument("--name", help="of a type that no volume has")
        parser.add_argument("--description")
        parser.add_argument("--specs", default="", help="KEY=VALUE,…: to be set")
        parser.add_argument("--drop-specs", default="", help="KEY,…: to be removed")
        parser.add_argument("--default", action="store_true")
        seen = parser.add_mutually_exclusive_group()
        seen.add_argument("--public", action="store_const", const=True)
        seen.add_argument("--private", action="store_const", const=False, dest="public")

    def go(self, options: Mapping[str, Any]) -> None:
        """Change it, all of it or nothing."""
        kind = find.volume_type(options["volume_type"])
        with transaction.atomic():
            words = {word: options[word] for word in ("name", "description")}
            update_type(kind, is_public=options["public"], **words)
            set_specs(kind, dict(pairs(options["specs"])))
            for key in filter(None, options["drop_specs"].split(",")):
                drop_spec(kind, key)
            if options["default"]:
                make_default(kind)
        self.tell(f"Successfully updated volume type '{kind.name}'")
