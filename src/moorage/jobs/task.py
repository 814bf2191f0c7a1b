# SPDX-License-Identifier: BSD-2-Clause
"""Tasks: the smallest things that are done, undone, retried and shown.

A task is data. It stands in the journal before it takes effect, so a new process can
carry it on, or take it back, from the journal alone. There are two kinds: :class:`Run`
asks a node to do something; :class:`Commit` changes the configuration, in the same
transaction that notes in the journal that it did.
"""

from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from moorage.model import Config, Disk
from moorage.protocol import Call, Verb

R = TypeVar("R")


def today(call: Verb[R], config: Config) -> Verb[R]:
    """Return a call that speaks of disks in the epochs that their records have by now.

    A step is planned before the commits that raise an epoch, and may be taken back
    after them.
    """

    def renewed(disk: Disk) -> Disk:
        known = config.objects.get(disk.uuid)
        if not isinstance(known, Disk):
            return disk
        return replace(disk, epoch=max(known.epoch, disk.epoch))

    return call.renewed(renewed)


class Witness(Struct, frozen=True):
    """Another node, and what to call there to learn whether something was done.

    The call succeeds if it was.
    """

    node: str
    ask: Call


class Run(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="run"):
    """Ask a node to do something.

    Attributes
    ----------
    what
        What a person reads: ``attach disk data1 on node2``.
    node
        Uuid of the node.
    do
        The verb; idempotent.
    undo
        What takes it back on the same node, whether or not it was done; None when
        there is nothing to take back.
    final
        Once this task is done there is no way back: the job only goes forward. It is
        asked for until the node answers; an error means that it was not done.
    tolerant
        Whether the job goes on when this fails; the failure becomes a warning.
    patient
        Whether a tolerant one is asked for until the node answers, or is said to be
        off; it may fail then.
    spoils
        Whether a failure leaves the disk in doubt: it is quarantined then, and what
        follows is left out, up to the commit that would forget it.
    hint
        What to type when this fails, where the error itself does not say.
    lasting
        Whether what was done outlives a power loss of the node, as a volume does and
        an attachment does not. On a node that is off nothing else is left to undo.
    witness
        Who can tell whether it was done, when it failed, or when somebody says in
        the middle that the node is off.
    name
        What later tasks call it by; no two of an operation have the same one. Empty for
        one whose result nobody uses.
    use
        Arguments whose values are the results of earlier tasks, by their names; by
        their positions in a journal that an earlier version wrote.
    """

    what: str
    node: str
    do: Call
    undo: Call | None = None
    final: bool = False
    tolerant: bool = False
    patient: bool = False
    spoils: bool = False
    hint: str = ""
    lasting: bool = False
    witness: Witness | None = None
    name: str = ""
    use: dict[str, str | int] = field(default_factory=dict)


class Commit(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="commit"):
    """Change the configuration; its result is the list of the uuids that it put.

    Attributes
    ----------
    what
        What a person reads.
    change, back
        The change set and the one that takes it back, as JSON values.
    final
        Once this is committed there is no way back.
    """

    what: str
    change: dict[str, Any]
    back: dict[str, Any]
    final: bool = False


Task = Run | Commit
