# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage backend-modify``: say of a cluster that it is off, or is to be left."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.management import find
from moorage_cloud.management.command import CloudCommand
from moorage_cloud.management.words import flag
from moorage_cloud.models import StorageDomain


class Command(CloudCommand):
    """Change what is on record of a cluster."""

    help = (
        "Change a cluster's record. --offline says that it is switched off: from then "
        "on its volumes can be taken from it, and two guests would write if it is not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what is to be changed."""
        parser.add_argument("backend", help="its ID or name")
        for name in ("drained", "offline"):
            parser.add_argument(
                f"--{name}", type=flag, nargs="?", const=True, metavar="True|False"
            )
        for name in ("address", "user", "pass", "ca"):
            parser.add_argument(f"--{name}")
        parser.add_argument("--port", type=int)
        parser.add_argument("--domain", action="append", default=[])

    def go(self, options: Mapping[str, Any]) -> None:
        """Change it."""
        backend = find.backend(options["backend"])
        names = {"user": "username", "pass": "password"}
        for option in ("drained", "offline", "address", "user", "pass", "ca", "port"):
            if options[option] is not None:
                setattr(backend, names.get(option, option), options[option])
        backend.save()
        for one in options["domain"]:
            domain, _ = StorageDomain.objects.get_or_create(name=one)
            domain.backends.add(backend)
        self.tell(f"Successfully updated backend '{backend}'")
