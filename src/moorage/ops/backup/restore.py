# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-backup import``: an instance, made from an export of one.

What the request does not say, the export does: disks with their sizes and templates,
network cards, parameters. Then it is the making of an instance like any other, but for
what is put on its disks.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Annotated, Any, Self

from msgspec.structs import replace

from moorage.errors import BadInput
from moorage.jobs import Lock, Question, Run, Task, View, once, rights
from moorage.jobs.unread import check_unread
from moorage.model import Config, Disk, Instance, Nic, Node
from moorage.model.export import Dump, Export, Form
from moorage.model.kinds import Rate
from moorage.ops.asking import node_tasks
from moorage.ops.guests import osparams
from moorage.ops.instance.completed import Completed
from moorage.ops.instance.create import InstanceCreate
from moorage.ops.planning.disk_checks import check_rate
from moorage.ops.volumes import disk_words, pools
from moorage.ops.volumes.disk_names import hold_name
from moorage.protocol import LoadDisk, RunImportScript, Writing

from . import as_exported, dumps, trust
from .carrying import Found
from .source import Source


class Restored(InstanceCreate, frozen=True, kw_only=True):
    """The making of an instance, its disks with what an export has of them.

    Attributes
    ----------
    found
        The export, and where it lies.
    rate
        How much is copied in a second at most; 0 for no limit.
    os_named
        Whether the request names the OS; else it is that of the export.
    """

    found: Found
    rate: Rate = 0
    os_named: bool = False

    @property
    def export(self) -> Export:
        """What its disks are made of."""
        return self.found.export

    def needs_os(self) -> bool:
        """Whether its node must have its OS: one that was named, or imports dumps.

        What can be brought back without it is brought back.
        """
        return bool(self.os_type) and (self.os_named or self.installs())

    def os_missing(self, view: View) -> str:
        """Return why its node runs no script of its OS; empty if it does."""
        if not self.os_type:
            return ""
        case = self.case(view)
        return osparams.missing(view, case.node, self.os_type, case.os_parameters)

    def tasks(self, view: View) -> Iterator[Task]:
        """Fetch the export if its node does not see it; then make the instance."""
        yield from self.found.fetched(view, self.case(view).node, self.rate)
        yield from InstanceCreate.tasks(self, view)

    def put_on(self, view: View) -> Iterator[Task]:
        """Yield the tasks that write the dumps, each once it is seen to be whole."""
        case = self.case(view)
        node, instance, disks = case.node, case.instance, case.disks
        export, name = self.export, self.found.name_on(view, node)
        fetched = name != export.name
        for index, (disk, dump) in enumerate(zip(disks, export.dumps, strict=True)):
            if dump.form is Form.OS:
                told = osparams.told(view, instance, disks, node)
                yield Run(
                    what=f"let OS {instance.os} import disk {index} from {export.name}",
                    node=node.uuid,
                    do=RunImportScript(
                        **told, export=name, index=index, dump=dump, fetched=fetched
                    ),
                )
            else:
                yield load(view, self.found, dump, disk, node, self.rate)
        yield from self.found.let_go(view, node)


def load(
    view: View, found: Found, dump: Dump, disk: Disk, node: Node, rate: int
) -> Run:
    """Return the task that writes a dump to an attached disk."""
    export, name = found.export, found.name_on(view, node)
    return Run(
        what=f"restore disk {disk.label} from {dump.file} of export {export.name}",
        node=node.uuid,
        do=LoadDisk(
            **node_tasks.of_disk(view.config, disk),
            name=name,
            dump=dump,
            writing=Writing(rate=rate),
            uid_pool=view.config.cluster.uid_pool,
            fetched=name != export.name,
        ),
    )


class InstanceImport(Completed, frozen=True, kw_only=True):
    """``OP_INSTANCE_CREATE`` in mode ``import``.

    Attributes
    ----------
    src_node
        Where the export lies; the only node that has it, if it names none.
    src_path
        Its name, or its directory; empty for the name of the instance.
    rate
        How much is copied in a second at most; 0 for no limit.
    no_nics
        Whether it gets no network card, whatever the export says.
    trust_export
        Whether all that the export says is taken, as if it had been typed.
    """

    mode: str = "import"
    src_node: str | None = None
    src_path: Annotated[str | None, rights.PLACE] = None
    rate: Rate = 0
    no_nics: bool = False
    trust_export: Annotated[bool, rights.ADOPTS] = False

    @property
    def source(self) -> Source:
        """The export."""
        return Source(path=self.src_path or self.instance_name, node=self.src_node)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the names; share the export, the nodes that may be it, and pools."""
        yield Lock("instance", self.instance_name)
        yield from self.source.hold(view.config, self.case(view).hosts)
        for given in self.disks:
            name = disk_words.checked_name(given.get("name"))
            yield from hold_name(name, sole=True, owned=True)
            yield from pools.hold_named(view.config, given.get("pool"))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask for the export, and for all that making an instance may ask for."""
        known = replace(self, disks=[])
        yield from InstanceCreate.questions(known, view)
        hosts = self.case(view).hosts
        yield from self.source.ask(view.config, hosts)
        for node in hosts:
            yield node_tasks.oses_on(node.uuid)
        for node in view.config.hosts():
            yield node_tasks.providers_on(node.uuid)

    def asks_now(self, _view: View) -> None:
        """Of all nodes: any of them may have the export."""

    def settled(self, view: View) -> Self:
        """Return the same request, with its nodes named, and the export's."""
        node = view.config.node(self.whole(view).found.node)
        return Completed.settled(self, view).naming(src_node=node.name)

    @once
    def whole(self, view: View) -> Restored:
        """Return the request with all that the export says."""
        found = self.source.find(view)
        export = found.export
        told = export.instance
        if told is None:
            raise BadInput(
                f"export {export.name} is of a disk alone",
                hint="gnt-backup import --disk-only",
            )
        by_os = any(dump.form is Form.OS for dump in export.dumps)
        if by_os and not self.os_type and not self.trust_export:
            raise BadInput(
                f"only the import script of an OS reads the dumps of {export.name}, "
                "and which one runs here is not for an export to say",
                hint=f"-o OS, or {trust.OPTION}",
            )
        told = told if self.trust_export else trust.plain(told)
        asked = {
            name: getattr(self, name)
            for name in InstanceCreate.__struct_fields__
            if name not in ("src_node", "src_path")
        }
        merged = {
            "mode": "create",
            "disks": self._disks(export),
            "nics": self._nics(view, told.nics),
            "os_type": self.os_type or told.os or None,
            "no_install": not by_os,
            "hypervisor": self.hypervisor or as_exported.hypervisor(view, told),
            "hvparams": as_exported.hypervisor_parameters(view, told) | self.hvparams,
            "beparams": as_exported.backend_parameters(view, told) | self.beparams,
            "osparams": told.osparams | self.osparams,
            "tags": self.tags or told.tags,
        }
        named = bool(self.os_type)
        return Restored(**asked | merged, found=found, rate=self.rate, os_named=named)

    def _disks(self, export: Export) -> list[dict[str, Any]]:
        if len(self.disks) > len(export.dumps):
            raise BadInput(
                f"export {export.name} has {len(export.dumps)} disks, not "
                f"{len(self.disks)}",
                hint="gnt-disk add and attach make more of them afterwards",
            )
        given = self._asked_of_disks(export)
        return [
            as_exported.disk(
                *(dump, one, self.disk_template, f"disk {slot}"),
                trusted=self.trust_export,
            )
            for slot, (one, dump) in enumerate(zip(given, export.dumps, strict=True))
        ]

    def _asked_of_disks(self, export: Export) -> list[dict[str, Any]]:
        return [*self.disks, *({} for _ in export.dumps[len(self.disks) :])]

    def _nics(self, view: View, known: Sequence[Nic]) -> list[dict[str, Any]]:
        """Return the cards: those of the export, changed as asked for.

        An address that an instance of the cluster has is made anew.
        """
        if self.no_nics:
            return []
        taken = {nic.mac for one in view.config.all(Instance) for nic in one.nics}
        cards = [as_exported.card(view.config, nic, taken) for nic in known]
        none: dict[str, Any] = {}
        pairs = zip_longest(cards, self.nics or [], fillvalue=none)
        return [{**told, **given} for told, given in pairs]

    def check(self, view: View) -> None:
        """Refuse what the export cannot give, and what no instance could be."""
        whole = self.whole(view)
        check_unread(whole)
        check_rate(self.rate)
        if whole.os_type and all(one.form is Form.OS for one in whole.export.dumps):
            travels = not whole.found.seen_from(view, whole.case(view).node)
            dumps.check_rated(self.rate, whole.os_type, travels=travels)
        whole.check(view)

    def warnings(self, view: View) -> Iterator[str]:
        """Tell what is not as it was exported."""
        whole = self.whole(view)
        yield from whole.warnings(view)
        if not self.trust_export:
            yield from self._left(view.config, whole.export)
        missing = whole.os_missing(view)
        if missing:
            yield f"the instance keeps the OS of its export, but {missing}"
        if not all(dump.sha256 for dump in whole.export.dumps):
            yield (
                f"export {whole.export.name} has no checksums: nobody can tell whether "
                "its dumps are what was exported"
            )
        known = whole.export.instance
        told = known.hvparams if known and self.trust_export else {}
        closed = as_exported.CLOSED | whole.hvparams
        if told.get("vnc_bind_address") and whole.hvparams == closed:
            yield (
                "its screen was open to whoever reached the node: it has no port here, "
                f"and shows by: gnt-instance console --vnc {self.instance_name}"
            )
        cards = known.nics if known and not self.no_nics else ()
        for number, nic in enumerate(cards):
            if (whole.nics or [])[number].get("mac") is None:
                yield (
                    f"network card {number} gets a new MAC address: another instance "
                    f"has {nic.mac}"
                )

    def _left(self, config: Config, export: Export) -> Iterator[str]:
        """Yield a sentence for all that is not taken from the export."""
        told = export.instance
        if told is None:
            return
        names = {"hvparams": self.hvparams, "osparams": self.osparams}
        yield from trust.left(config, told, {**names, "tags": self.tags})
        for number, nic in enumerate(() if self.no_nics else told.nics):
            given = (self.nics or [])[number : number + 1]
            yield from trust.left_of_card(config, number, nic, *given or [{}])
        asked = self._asked_of_disks(export)
        for number, (one, dump) in enumerate(zip(asked, export.dumps, strict=True)):
            yield from as_exported.left_of_disk(dump, one, self.disk_template, number)
