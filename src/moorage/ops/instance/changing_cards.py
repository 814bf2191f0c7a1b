# SPDX-License-Identifier: BSD-2-Clause
"""What ``gnt-instance modify --net`` does: network cards in, out, and connected anew.

Each card that a request names is looked up once, in the state before the request. On a
running instance cards are plugged and unplugged at once; one that is connected anew is
unplugged and plugged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from moorage.errors import BadInput, NotFound, WrongState
from moorage.jobs import Lock, Question, Run, Task, View
from moorage.jobs.results import Changed
from moorage.model import Claim, Instance, Nic
from moorage.ops.asking import node_tasks
from moorage.ops.guests import cabling, nics
from moorage.ops.guests.foreign import check_ours
from moorage.ops.guests.liveness import guest, runs
from moorage.ops.instance.base import check_usable
from moorage.ops.instance.change_request import Changes
from moorage.ops.planning import links, placement
from moorage.protocol import PlugCard, UnplugCard

ADD, REMOVE, MODIFY = _ACTIONS = ("add", "remove", "modify")
_LAST = "-1"


@dataclass(frozen=True, slots=True)
class Mod:
    """A change of one card.

    Attributes
    ----------
    old, new
        The card before and after it; None for one that is not there.
    """

    what: str
    given: dict[str, Any]
    old: Nic | None
    new: Nic | None


def parsed(given: Sequence[Sequence[Any]]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return action, card and parameters of each change, also of Ganeti's old form."""
    return [_parsed(one) for one in given]


def _parsed(one: Sequence[Any]) -> tuple[str, str, dict[str, Any]]:
    if len(one) == 2:
        word = str(one[0])
        action = word if word in (ADD, REMOVE) else MODIFY
        one = (action, _LAST if word in (ADD, REMOVE) else word, one[1])
    if len(one) != 3 or one[0] not in _ACTIONS or not isinstance(one[2], dict):
        raise BadInput(
            f"a change of a network card is [action, card, parameters], not {one}"
        )
    words = {key: "none" if one is None else str(one) for key, one in one[2].items()}
    return str(one[0]), str(one[1]), words


class CardChanges(Changes):
    """The network cards that an instance gets, loses, or has connected anew."""

    @cached_property
    def _planned(self) -> tuple[list[Mod], tuple[Nic, ...]]:
        """Each change of a card, and the cards that it is to have."""
        instance, asked = self.instance, self.request
        making = nics.Making(self.view, instance.name, asked.conflicts_check)
        left = list(instance.nics)
        given = parsed(asked.nics)
        olds = [None if a == ADD else _meant(instance, i) for a, i, _ in given]
        for (action, _, _), old in zip(given, olds, strict=True):
            if old and action == REMOVE:
                making.leave(old)
        pairs = zip(given, olds, strict=True)
        mods = [_modded(making, left, one, old) for one, old in pairs]
        nics.check_count(len(left))
        nics.check_names([nic.name for nic in left])
        return mods, tuple(left)

    def locks(self) -> Iterator[Lock]:
        """Share the networks."""
        given = parsed(self.request.nics)
        yield from cabling.hold_named(self.view.config, (one[2] for one in given))

    def questions(self) -> Iterator[Question]:
        """Ask the node for its bridges."""
        if self.request.nics and not self.node.offline:
            yield placement.room_on(self.view.config, self.node)

    def check(self) -> None:
        """Refuse cards that it cannot have."""
        view, instance = self.view, self.instance
        if not self.request.nics:
            return
        mods, cards = self._planned
        check_usable(view, instance)
        links.check(view, self.node, cards)
        found = guest(view, instance)
        if found and found.cards is None and any(map(self._rewires, mods)):
            check_ours(view, instance, "a network card that is changed")
            raise WrongState(
                f"instance {instance.name} was started by an older agent: its network "
                "cards cannot be plugged",
                hint=f"gnt-instance shutdown {instance.name}, and then again",
            )

    def claims(self) -> Iterator[Claim]:
        """Claim the addresses of new cards."""
        instance, (_, cards) = self.instance, self._planned
        new = nics.claimed(cards, instance.nics)
        if new:
            home = instance.primary_node
            yield Claim(node=home, instance=instance.name, addresses=new)

    def tasks(self, then: View) -> Iterator[Task]:
        """Yield what plugs and records the cards; `then` is the view before that."""
        if not self.request.nics:
            return
        mods, cards = self._planned
        instance = self.request.instance(then)
        if runs(self.view, instance):
            for mod in filter(self._rewires, mods):
                yield from self._plugged(mod)
        what = f"change the network cards of {instance.name}"
        yield then.change(what, instance, nics=cards)

    def _rewires(self, mod: Mod) -> bool:
        """Whether a running guest must let go of a card, or gets one."""
        if mod.old is None or mod.new is None:
            return True
        old, new = (
            replace(node_tasks.wired(self.view.config, self.instance, nic), name=None)
            for nic in (mod.old, mod.new)
        )
        return old != new

    def _plugged(self, mod: Mod) -> Iterator[Task]:
        view, instance, node = self.view, self.instance, self.node
        if mod.old:
            yield Run(
                what=f"unplug {mod.what} from {instance.name} on {node.name}",
                node=node.uuid,
                do=_unplug(instance, mod.old),
                undo=_plug(view, instance, mod.old, instance.nics.index(mod.old)),
            )
        if mod.new:
            yield Run(
                what=f"plug {mod.what} into {instance.name} on {node.name}",
                node=node.uuid,
                do=_plug(view, instance, mod.new, self._planned[1].index(mod.new)),
                undo=_unplug(instance, mod.new),
            )

    def told(self) -> Iterator[Changed]:
        """Yield what is changed, in Ganeti's words."""
        before, (mods, after) = self.instance.nics, self._planned
        for mod in mods:
            if mod.new is None:
                yield f"nic/{before.index(mod.old) if mod.old else 0}", REMOVE
            elif mod.old is None:
                ip, mac = mod.new.ip, mod.new.mac
                params = node_tasks.wired(self.view.config, self.instance, mod.new)
                told = f"add:mac={mac},ip={ip},mode={params.nicparams['mode']}"
                told += f",link={params.nicparams['link']},network={mod.new.network}"
                yield f"nic/{after.index(mod.new)}", told
            else:
                words = (f"{key}={value}" for key, value in mod.given.items())
                yield f"nic/{before.index(mod.old)}", f"modify:{','.join(words)}"


def _modded(
    making: nics.Making,
    left: list[Nic],
    asked: tuple[str, str, dict[str, Any]],
    old: Nic | None,
) -> Mod:
    """Change a list of cards as it is asked for."""
    action, ident, given = asked
    if old and old not in left:
        raise BadInput(f"network card {ident} is named twice")
    if action == ADD or old is None:
        at = len(left) if ident == _LAST else _slot(ident, len(left))
        what = nics.number_of(at)
        card = nics.new(making, what, nics.read(what, given))
        left.insert(at, card)
        return Mod(what, given, None, card)
    what = nics.number_of(left.index(old))
    if action == REMOVE:
        if given:
            raise BadInput(f"{what}: remove takes no parameters")
        left.remove(old)
        return Mod(what, given, old, None)
    if not given:
        raise BadInput(f"{what}: nothing to modify", hint="--net N:modify,link=br0")
    new = nics.changed(making, what, old, nics.read(what, given))
    left[left.index(old)] = new
    return Mod(what, given, old, new)


def _slot(ident: str, most: int) -> int:
    if not ident.isdecimal() or int(ident) > most:
        raise BadInput(f"a network card is added at a number from 0 to {most}")
    return int(ident)


def _meant(instance: Instance, ident: str) -> Nic:
    """Return the card that a number, name or uuid stands for."""
    if ident == _LAST and instance.nics:
        return instance.nics[-1]
    for number, nic in enumerate(instance.nics):
        if ident in (str(number), nic.uuid, nic.name):
            return nic
    raise NotFound(
        f"instance {instance.name} has no network card {ident}",
        hint=f"gnt-instance info {instance.name}",
    )


def _plug(view: View, instance: Instance, nic: Nic, index: int) -> PlugCard:
    return PlugCard(
        **node_tasks.of_guest(instance),
        nic=node_tasks.wired(view.config, instance, nic),
        index=index,
        networks=node_tasks.networks(view.config, [nic]),
        tags=instance.tags,
    )


def _unplug(instance: Instance, nic: Nic) -> UnplugCard:
    return UnplugCard(**node_tasks.of_guest(instance), nic=nic.uuid)
