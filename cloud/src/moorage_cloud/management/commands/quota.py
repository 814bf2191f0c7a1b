# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage quota``: what projects use and may use; with ``--fix`` set right."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from moorage_cloud.management import find
from moorage_cloud.management.command import FORMATS, CloudCommand
from moorage_cloud.models import Usage, VolumeType
from moorage_cloud.verbs import quota


class Command(CloudCommand):
    """Show, set, compare or repair quota."""

    help = (
        "Show what projects use and may use. --check compares it with the volumes that "
        "there are, --fix sets it right."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what to do."""
        parser.add_argument("--project", help="name or ID")
        parser.add_argument("--set", metavar="RESOURCE=LIMIT", help="-1 is no limit")
        parser.add_argument("--check", action="store_true")
        parser.add_argument("--fix", action="store_true")
        parser.add_argument("-o", dest="form", choices=FORMATS, default="pretty")

    def go(self, options: Mapping[str, Any]) -> None:
        """Do it."""
        if options["check"] or options["fix"]:
            self._compare(fix=options["fix"])
            return
        named = find.project(options["project"] or "")
        if options["set"]:
            self._set(named, options["set"])
            return
        projects = Usage.objects.order_by("project").values_list("project", flat=True)
        rows = [
            {"project": project, "resource": name, "limit": limit, "in_use": in_use}
            for project in ([named] if named else projects.distinct())
            for name, limit, in_use in _rows(project)
        ]
        columns = ("project", "resource", "limit", "in_use")
        self.show(rows, columns, options["form"])

    def _compare(self, *, fix: bool) -> None:
        found = quota.repair() if fix else list(quota.drifts())
        for one in found:
            self.tell(
                f"Project {one.project}: {one.resource} is {one.said} on record, and "
                f"{one.true} by what there is"
            )
        if not found:
            self.tell("The quota is what there is")
        elif fix:
            self.tell(f"Set right: {len(found)}")
        else:
            raise CommandError("to set it right: snf-manage quota --fix")

    def _set(self, project: str, text: str) -> None:
        resource, _, limit = text.partition("=")
        if not project or not (limit.isdecimal() or limit == "-1"):
            raise CommandError("say --project NAME --set RESOURCE=LIMIT")
        counted, _, kind = resource.partition("_")
        known = VolumeType.objects.filter(name=kind, deleted=False)
        if counted not in quota.RESOURCES or ("_" in resource and not known.exists()):
            words = ", ".join(quota.RESOURCES)
            raise CommandError(
                f"there is no resource '{resource}': there are {words}, and each of "
                "these with _ and the name of a type"
            )
        quota.set_limits(project, {resource: int(limit)})
        self.tell(f"Project {project} may have {limit} of {resource}")


def _rows(project: str) -> list[tuple[str, int, int]]:
    limits, used = quota.limits(project), quota.usage(project)
    names = sorted(limits.keys() | used.keys())
    return [(name, limits.get(name, -1), used.get(name, 0)) for name in names]
