# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node modify``: what a node is for, and whether it is off.

It takes no lock. A job that waits for a silent node holds locks, and this is how an
operator ends that wait: by saying that the node is off. The compare-and-set of the
commit is protection enough, because only the node's own record changes: of two at once,
one may be refused, and has changed nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import field
from msgspec.structs import replace

from moorage.errors import BadInput, MoorageError, WrongState, cause_of, may_be_off
from moorage.jobs import Ask, Lock, Question, Task, View
from moorage.jobs.results import Changed
from moorage.model import Config, GuestState, Node, successor
from moorage.ops import addresses, certificates
from moorage.ops.candidates import room_for_one
from moorage.ops.merging import merged
from moorage.ops.ndparams import checked
from moorage.protocol import ListGuests
from moorage.units import counted

from . import roles
from .base import OnNode
from .residents import named, strangers

_FORCED = "gnt-node modify --force --offline=yes"
_FLAGS = ("offline", "drained", "master_candidate")
"""At most one of them is true."""


class NodeSetParams(OnNode, frozen=True, kw_only=True):
    """Change a node.

    Attributes
    ----------
    master_candidate
        Whether it keeps a copy of the state, and may become the master.
    powered
        Whether its power is on, as far as anybody knows.
    ndparams
        Node parameters that differ from its group's; the value ``default`` drops one.
    offline
        Whether somebody made sure that it is off: nothing on it runs or writes.
    drained
        Whether it takes no new instances.
    master_capable
        Whether it may ever become the master.
    vm_capable
        Whether it runs instances.
    secondary_ip
        Where disks are mirrored to, and guests migrate to, from now on.
    auto_promote
        Whether other nodes become master candidates in its place.
    force
        Mark it offline although it answers and guests run there.
    """

    op_id = "OP_NODE_SET_PARAMS"

    offline: bool | None = None
    drained: bool | None = None
    master_candidate: bool | None = None
    powered: bool | None = None
    master_capable: bool | None = None
    vm_capable: bool | None = None
    secondary_ip: str | None = None
    auto_promote: bool = False
    ndparams: dict[str, Any] = field(default_factory=dict)
    force: bool = False

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the node if its mirrors get another address: some may be being made.

        Nobody waits to say that it is off: the jobs that hold it may wait for that.
        """
        if self.secondary_ip:
            yield Lock("node", self.node(view).uuid)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask who runs there, before the node is believed to be off, or back."""
        sure = self.offline and self.force  # then nobody waits for a node that hangs
        if self.offline is not None and self.offline != self.node(view).offline:
            yield from () if sure else (self._guests(view),)

    def _guests(self, view: View) -> Ask[list[GuestState]]:
        return Ask(self.node(view).uuid, ListGuests(), even_offline=True)

    def check(self, view: View) -> None:
        """Refuse what is not true of the node, as far as anybody can tell."""
        node = self.node(view)
        self._check_roles(view, node)
        if self.offline and not node.offline and not self.force:
            self._check_off(view, node)
        if self.offline is False and node.offline:
            self._check_back(view, node)
        if self.secondary_ip:
            self._check_secondary(view, node, self.secondary_ip)
        if self.vm_capable is False:
            roles.check_vm_capable(view.config, node)
        self._promoted(view, node)

    def _promoted(self, view: View, node: Node) -> tuple[Node, ...]:
        changes = self._changes(node, view.config)
        return roles.promoted(
            view.config, node, changes, view.now, freely=self.auto_promote
        )

    @staticmethod
    def _check_secondary(view: View, node: Node, address: str) -> None:
        """Refuse what is no address, or would cut mirrors that run off."""
        addresses.check(address, "secondary", "--secondary-ip")
        addresses.check_unused(view.config, node.name, address)
        mirrored = view.config.mirrored_on(node)
        if mirrored and address != node.secondary_ip:
            raise WrongState(
                f"node {node.name} keeps copies of "
                f"{counted(len(mirrored), 'mirrored disk')}, reached at "
                f"{node.secondary_ip}: {mirrored[0].label}",
                hint=f"gnt-node evacuate {node.name}",
            )

    def warnings(self, view: View) -> Iterator[str]:
        """Say which marks nobody acts on."""
        node = self.node(view)
        if self.powered is not None:
            yield f"no power is switched: the mark of node {node.name} is only shown"
        if self.secondary_ip:
            new = replace(node, secondary_ip=self.secondary_ip)
            yield from addresses.warnings(view.config, new)

    def _check_roles(self, view: View, node: Node) -> None:
        wanted = [name for name in _FLAGS if getattr(self, name)]
        if len(wanted) > 1:
            raise BadInput(
                f"a node is not {' and '.join(wanted)} at once",
                hint=f"gnt-node modify --{wanted[0].replace('_', '-')}=yes {node.name}",
            )
        if view.config.cluster.master_node == node.uuid and set(wanted) & {*_FLAGS[:2]}:
            raise WrongState(
                f"node {node.name} is the master: it cannot be {wanted[0]}",
                hint="gnt-cluster getmaster",
            )
        if view.config.cluster.master_node == node.uuid and False in (
            self.master_candidate,
            self.master_capable,
        ):
            raise WrongState(
                f"node {node.name} is the master, and so a candidate",
                hint="gnt-cluster getmaster",
            )
        if self.drained and node.offline and self.offline is None:
            raise WrongState(
                f"node {node.name} is marked offline: it cannot be drained, too",
                hint=f"gnt-node modify --offline=no --drained=yes {node.name}",
            )
        self._check_candidate(node)

    def _check_candidate(self, node: Node) -> None:
        """Refuse to make a candidate of a node that could not become the master."""
        if not self.master_candidate:
            return
        names = ("offline", "drained", "master_capable")
        given = ((getattr(self, name), getattr(node, name)) for name in names)
        offline, drained, capable = (old if new is None else new for new, old in given)
        if offline or drained or not capable:
            raise WrongState(
                f"node {node.name} cannot be a master candidate: it is offline, "
                "drained or not master_capable",
                hint=f"gnt-node info {node.name}",
            )

    def _check_off(self, view: View, node: Node) -> None:
        """Refuse to believe that a node is off which says that it runs guests.

        An error is an answer, too: whoever sends one has power, and may run anything.
        """
        try:
            found = view.answer(self._guests(view)) or []
        except MoorageError as error:
            if may_be_off(error):
                return  # what the operator says is all that is known
            raise WrongState(
                f"node {node.name} is not off: it answers, with an error "
                f"({error.message})",
                hint=error.hint or f"power it off, or: {_FORCED} {node.name}",
                node=node.name,
            ) from error
        running = [guest for guest in found if guest.runs]
        if running:
            raise WrongState(
                f"node {node.name} is not off: it answers, and runs {named(running)}",
                hint=f"gnt-node evacuate {node.name}",
                node=node.name,
            )

    def _check_back(self, view: View, node: Node) -> None:
        """Refuse a node that is silent, or runs what belongs elsewhere by now."""
        try:
            found = view.answer(self._guests(view)) or []
        except MoorageError as error:
            mend = "" if may_be_off(error) else error.hint
            back = f"gnt-node modify --offline=no {node.name}"
            raise WrongState(
                f"node {node.name} gives no answer ({cause_of(error)}): it stays "
                "offline",
                hint=f"{mend or 'start its agent'}, then: {back}",
                node=node.name,
            ) from error
        wrong = strangers(view.config, node, found)
        if wrong:
            raise WrongState(
                f"node {node.name} runs {named(wrong)}, which belongs elsewhere: two "
                "guests would write to the same disks",
                hint=f"reboot the node, then: gnt-node modify --offline=no {node.name}",
                node=node.name,
            )

    def _changes(self, node: Node, config: Config) -> dict[str, Any]:
        """Return the fields that change; Ganeti's demotions and promotions included."""
        names = (*_FLAGS, "powered", "master_capable", "vm_capable", "secondary_ip")
        found = {n: getattr(self, n) for n in names if getattr(self, n) is not None}
        if self.ndparams:
            found["ndparams"] = merged(node.ndparams, checked(self.ndparams))
        if not found:
            raise BadInput(
                "nothing to change was named",
                hint=f"gnt-node modify --offline=yes {node.name}",
            )
        if self.offline or self.drained or self.master_capable is False:
            found["master_candidate"] = False
        if self.offline:
            found["drained"] = False
        if self.master_candidate is None and self._is_back(node, found):
            found["master_candidate"] = node.master_capable and room_for_one(config)
        return found

    @staticmethod
    def _is_back(node: Node, changes: dict[str, Any]) -> bool:
        """Whether a node that was offline or drained is neither afterwards."""
        was = node.offline or node.drained
        flags = (changes.get(n, getattr(node, n)) for n in ("offline", "drained"))
        return was and not any(flags)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the change."""
        node = self.node(view)
        new = successor(node, view.now, **self._changes(node, view.config))
        if not new.master_candidate:
            new = replace(new, master_certs=())  # nodes take its orders no more
        promoted = self._promoted(view, node)
        yield view.record(f"change node {node.name}", new, *promoted)
        by_hand = not (new.offline or new.drained)  # else nobody waits for anybody
        if by_hand and node.master_certs != new.master_certs:
            yield from certificates.told(view)

    def result(self, view: View, _results: Sequence[Any]) -> list[Changed]:
        """Return what changed, and to what."""
        node = self.node(view)
        changes = self._changes(node, view.config).items()
        return [
            (name, value) for name, value in changes if getattr(node, name) != value
        ]
