# SPDX-License-Identifier: BSD-2-Clause
"""An export that the node which reads it does not see is fetched there first.

The dumps grow beside that node's own exports, under a name that no export has, and go
when they are on the disks. So what takes back a half-made export takes this back, too.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct, convert
from msgspec.structs import replace

from moorage.hypervisors import KVM
from moorage.jobs import Run, Task, View
from moorage.jobs.job import FINISHED, Job
from moorage.model import Config, Node, hvparams
from moorage.model.export import Export
from moorage.protocol import (
    Door,
    FetchExport,
    KillPrograms,
    OfferExport,
    WithdrawExport,
)

from . import dumps
from .remove import exports_of

SEALED, _OFFERED = "sealed", "offered"
"""Tasks whose results others use: the export, and the door that it is fetched at."""


class Trip(Struct, frozen=True, kw_only=True):
    """An export that goes from one node to another.

    Attributes
    ----------
    export
        As the first node has it.
    name
        What it is called on the other one, where it grows.
    ident
        What nothing else is called.
    rate
        How much is copied in a second at most; 0 for no limit.
    grows
        Whether the task `SEALED` has to tell lengths and checksums first.
    """

    export: Export
    source: Node
    target: Node
    name: str
    ident: str
    rate: int = 0
    grows: bool = False

    def tasks(self, config: Config) -> Iterator[Run]:
        """Yield what brings it there."""
        name, source, target = self.export.name, self.source, self.target
        known: dict[str, str | int] = {"export": SEALED} if self.grows else {}
        # Its undo is the last: the source may be out of reach, and it ends by itself.
        yield Run(
            what=f"offer export {name} on {source.name} to {target.name}",
            node=source.uuid,
            do=OfferExport(
                name=name,
                offer=self.ident,
                export=self.export,
                growing=self.grows,
                address=source.secondary_ip,
                port=_first_port(config),
                rate=self.rate,
            ),
            undo=WithdrawExport(name=name, offer=self.ident),
            name=_OFFERED,
            use=known,
        )
        yield dumps.begin(self.name, target)
        fetch = FetchExport(
            name=self.name,
            export=self.export,
            address=source.secondary_ip,
            files=tuple(dump.file for dump in self.export.dumps) if self.grows else (),
        )
        yield Run(
            what=f"fetch export {name} from {source.name} to {target.name}",
            node=target.uuid,
            do=fetch,
            # The source may be out of reach, or send for ever: the end is here.
            undo=KillPrograms(objects=tuple(sorted(fetch.touched()))),
            use={**known, "door": _OFFERED},
        )


class Making(Struct, frozen=True, kw_only=True):
    """An export that grows on the node that reads the disks, and is to lie on another.

    Attributes
    ----------
    reader, target
        The two nodes; they may be the same.
    rate
        MiB a second at most, on the way; 0 for as fast as it goes.
    """

    export: Export
    reader: Node
    target: Node
    rate: int = 0
    filled: dumps.Filled = {}

    def tasks(
        self, view: View, copied: Callable[[Export], Iterable[Task]]
    ) -> Iterator[Task]:
        """Yield all tasks.

        Parameters
        ----------
        copied
            Yields what copies the disks into an export of the reader.
        """
        name, target = self.export.name, self.target
        if self.reader.uuid == target.uuid:
            yield dumps.begin(name, target)
            yield from copied(self.export)
            yield from dumps.finish(self.export, target, self.filled)
            return
        grown = replace(self.export, name=dumps.apart(view, name))
        yield dumps.begin(grown.name, self.reader)
        yield from copied(grown)
        sealed = dumps.seal(grown, self.reader, {}, travels=True)
        yield replace(sealed, name=SEALED)
        trip = Trip(
            export=grown,
            source=self.reader,
            target=target,
            name=name,
            ident=grown.name,
            rate=self.rate,
            grows=True,
        )
        yield from trip.tasks(view.config)
        yield from dumps.finish(self.export, target, self.filled)
        yield dumps.tidy(grown.name, self.reader)


class Found(Struct, frozen=True, kw_only=True):
    """An export, and a node where it lies."""

    node: str
    export: Export

    def seen_from(self, view: View, node: Node) -> bool:
        """Whether a node sees it: it lies there, or in a directory that nodes share."""
        if node.uuid == self.node:
            return True
        known, seen = self.export, exports_of(view, node)
        return bool(known.uuid) and any(
            (one.name, one.uuid) == (known.name, known.uuid) and not one.problem
            for one in seen
        )

    def name_on(self, view: View, node: Node) -> str:
        """Return the name that its dumps have on a node that reads them."""
        name = self.export.name
        return name if self.seen_from(view, node) else dumps.apart(view, name)

    def fetched(self, view: View, node: Node, rate: int) -> Iterator[Run]:
        """Yield what brings the dumps to a node that is to read them."""
        if not self.seen_from(view, node):
            name = self.name_on(view, node)
            trip = Trip(
                export=replace(self.export, instance=None),
                source=view.config.node(self.node),
                target=node,
                name=name,
                ident=name,
                rate=rate,
            )
            yield from trip.tasks(view.config)

    def let_go(self, view: View, node: Node) -> Iterator[Run]:
        """Yield what gives the room back, when the dumps are on the disks."""
        if not self.seen_from(view, node):
            yield dumps.tidy(self.name_on(view, node), node)


def doors(jobs: Iterable[Job]) -> tuple[str, ...]:
    """Return the doors that jobs under way have had opened for exports, by digests."""
    ops = (op for job in jobs for op in job.ops if op.status not in FINISHED)
    done = (pair for op in ops for pair in zip(op.tasks, op.results, strict=False))
    return tuple(
        convert(told, Door).digest
        for task, told in done
        if isinstance(task, Run) and isinstance(task.do, OfferExport) and told
    )


def _first_port(config: Config) -> int:
    """Return the first port that is tried: exports and guests go through the same."""
    given = hvparams.filled(KVM, config.cluster.hvparams.get(KVM, {}))
    return int(given["migration_port"])
