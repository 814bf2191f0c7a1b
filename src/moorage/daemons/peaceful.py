# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster master-failover`` where the state is in etcd: the lead changes hands.

Nobody votes and nothing is copied. Who leads lets its jobs come to a stop and gives the
lead back, which only the node may take that is wished to. If who leads is dead, that
node has the lead when the lease has run out.
"""

from collections.abc import Callable

from moorage.api.luxi import LuxiClient
from moorage.errors import BadInput, Failed, MoorageError, WrongState
from moorage.store.etcd import EtcdSettings, wishing

from .paths import MasterPlaces
from .process import wait_until

_PATIENCE = 60
"""Seconds that the change may take: jobs under way get some of them, and a lease that
has to run out may be as long."""


def failover(
    places: MasterPlaces,
    settings: EtcdSettings,
    *,
    voting: bool,
    lossy: bool,
    agreed: Callable[[list[str]], None],
) -> list[str]:
    """Make the master that waits here the one that leads; return what is to be told.

    Raises
    ------
    BadInput
        If something is asked for that only copies of the state need.
    WrongState
        If the master here leads already, does not wait for the lead, or is of an
        earlier version than who leads.
    Failed
        If it does not lead in time.
    """
    if lossy or not voting:
        option = "--accept-loss" if lossy else "--no-voting"
        raise BadInput(
            f"{option} says nothing where the state is in etcd: no node votes, and "
            "nothing that was told as done is lost",
            hint="gnt-cluster master-failover",
        )
    why = waits(places)
    if why is None:
        raise WrongState(
            "the master is on this node already", hint="gnt-cluster getmaster"
        )
    if "led" not in why.facts:
        raise WrongState(
            f"the master here does not wait for the lead: {why.message}",
            hint=why.hint if "waits" in why.facts else "moorage master start",
        )
    if why.facts.get("late"):
        raise WrongState(
            f"the master here cannot lead: {why.message}",
            hint="install the later Moorage here, too",
        )
    agreed([])
    _led(places, settings)
    return ["The master is on this node now"]


def waits(places: MasterPlaces) -> MoorageError | None:
    """Return why the master here answers nothing; None if it leads."""
    try:
        with LuxiClient(str(places.socket)) as luxi:
            luxi.call("QueryConfigValues", ["drain_flag"])
    except MoorageError as error:
        return error
    return None


def _led(places: MasterPlaces, settings: EtcdSettings) -> None:
    with wishing(settings, _PATIENCE):
        wait_until(lambda: _settled(waits(places)), _PATIENCE)
        why = waits(places)
    if why:
        raise Failed(
            f"the master here does not lead: {why.message}",
            hint="gnt-cluster getmaster",
        )


def _settled(why: MoorageError | None) -> bool:
    """Whether it leads, or may not lead now that it has the lead."""
    return why is None or "barred" in why.facts
