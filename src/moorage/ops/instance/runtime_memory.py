# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance modify --runtime-memory``: a guest has more or less while it runs.

What it may have again counts as its own all the time: plans, claims and N+1 go by
``maxmem``. So nobody takes the memory that it gave back for good.
"""

from moorage.errors import BadInput, NoCapacity, WrongState
from moorage.jobs import Run, View
from moorage.model import Instance
from moorage.ops.asking import node_tasks
from moorage.ops.guests.foreign import check_ours
from moorage.ops.guests.liveness import guest, runs
from moorage.ops.planning import placement
from moorage.protocol import FillGuest
from moorage.units import Mib


def check(view: View, instance: Instance, wanted: Mib, *, force: bool) -> None:
    """Raise `Refused` unless a guest runs, can give memory back, and may have so much.

    Parameters
    ----------
    force
        Whether it may have less than its ``minmem``.
    """
    found = guest(view, instance) if runs(view, instance) else None
    if found is None or found.state != "running":
        raise WrongState(
            f"instance {instance.name} is not running: it has the memory on record "
            "from its next start on",
            hint=f"gnt-instance modify -B maxmem={wanted} {instance.name}",
        )
    check_ours(view, instance, "a change of its memory")
    if found.now is None:
        raise WrongState(
            f"the guest of instance {instance.name} has no balloon: its memory stays "
            "as it is until it starts anew, with the parameter 'balloon'",
            hint=f"gnt-instance reboot {instance.name}",
        )
    backend = node_tasks.beparams(view.config, instance)
    least = 1 if force else int(backend["minmem"])
    most = min(int(backend["maxmem"]), found.memory)
    if not least <= wanted <= most:
        raise BadInput(
            f"instance {instance.name} can have {least} to {most} MiB while it runs "
            f"(its minmem, and what it started with or maxmem), not {wanted}",
            hint="-B minmem=... for less, or --force; -B maxmem=... for more, from its "
            "next start on",
        )


def check_room(view: View, instance: Instance, wanted: Mib) -> None:
    """Raise `NoCapacity` if its node has not free what a guest is to have again."""
    node = view.config.home(instance)
    facts = view.answer(placement.room_on(view.config, node))
    found = guest(view, instance)
    more = wanted - (found.holds if found else 0)
    if facts and more > facts.memory_free:
        raise NoCapacity(
            f"node {node.name} cannot give instance {instance.name} {more} MiB more: "
            f"{facts.memory_free} MiB are free",
            hint=placement.ANYWAY,
            node=node.name,
        )


def fill(view: View, instance: Instance, wanted: Mib) -> Run:
    """Return the task that lets a guest have so much; undone by what it has now."""
    node, found = view.config.home(instance), guest(view, instance)
    told = node_tasks.of_guest(instance)
    back = FillGuest(**told, memory=found.holds) if found else None
    return Run(
        what=f"let {instance.name} have {wanted} MiB on {node.name}",
        node=node.uuid,
        do=FillGuest(**told, memory=wanted),
        undo=back,
    )
