# SPDX-License-Identifier: BSD-2-Clause
"""What workers and clusters do, and what goes wrong between them."""

from contextlib import suppress
from functools import partial

from cloud_berths import Killed
from cloud_users import Users
from cloud_world import PICK, WHERE, step
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from moorage_cloud.clusters import ClusterSilent, Heard, JobState
from moorage_cloud.life import Done, Failed
from moorage_cloud.models import Backend, Volume
from moorage_cloud.verbs.changing import changing, go_on, under_way
from moorage_cloud.work import hear, look_next, remove_next, send_next

TURNS = st.sampled_from(["sends", "looks", "listens_to_all", "removes"])
VERBS = st.sampled_from(
    ["attaches", "detaches", "deletes", "extends", "takes_a_snapshot"]
)
NEVER = 1 << 20
"""Of statements, more than there are."""
WHERETO = {"attaches", "extends"}
"""Those that take one more number."""
HOW = st.sampled_from(
    [
        *("runs", "fails", "fails_late", "fails_half_way", "cancels"),
        "dies_after_asking",
    ]
)
OTHERS = st.sampled_from(
    [
        *("flows", "sends", "looks", "listens_to_all", "detaches", "deletes"),
        *("attaches", "takes_by_force", "is_switched_off", "cancels", "runs"),
    ]
)


class Anything(Users):
    """All that may happen."""

    # -- the worker --------------------------------------------------------------------

    @step()
    def sends(self) -> None:
        self.time_passes()
        with suppress(Killed):
            send_next(self.docks.connect)

    @step()
    def looks(self) -> None:
        self.time_passes()
        with suppress(Killed):
            look_next(self.docks.connect)

    @step()
    def removes(self) -> None:
        with suppress(Killed):
            remove_next(self.docks.connect)
        self.observe()

    @step()
    def listens_to_all(self) -> None:
        for where in "ab":
            self.listens(where)

    @step(where=WHERE)
    def listens(self, where: str) -> None:
        backend = self.backend(where)
        berth = self.berths[where]
        with suppress(ClusterSilent, Killed):
            for heard in berth.events(backend.event_number):
                hear(backend, heard, berth)
        self.observe()

    @initialize(poor=st.booleans())
    def begin(self, poor: bool) -> None:
        """Have volumes as they are soon: with data, without, and on a server."""
        self.found(poor=poor)
        for where in (0, 2, None):
            self.creates(1, where, legacy=False, goes=where == 0, at=NEVER)
        for _ in range(2):
            self.flows()
        self.writes(0)
        self.detaches(1)

    @step()
    def flows(self) -> None:
        """Nothing goes wrong for a moment."""
        self.sends()
        for where in "ab":
            self.run_job(where)
            self.listens(where)
        self.removes()

    @step(one=PICK, where=PICK, verb=VERBS)
    def goes_well(self, one: int, where: int, verb: str) -> None:
        """Nothing goes wrong for a while: so that deep states are reached."""
        getattr(self, verb)(one, *((where,) if verb in WHERETO else ()))
        for _ in range(3):
            self.flows()
        self.writes(one)

    @step(turn=TURNS, at=st.integers(-10, 30))
    def dies(self, turn: str, at: int) -> None:
        """A worker is killed in the middle of what it writes down."""
        with self.dying(at):
            getattr(self, turn)()

    @step(verb=VERBS, one=PICK, where=PICK, at=st.integers(-20, 40))
    def dies_asking(self, verb: str, one: int, where: int, at: int) -> None:
        """What serves a user is killed, in the middle of it or after its commit."""
        with self.dying(at):
            getattr(self, verb)(one, *((where,) if verb in WHERETO else ()))

    @step()
    def dies_after_asking(self) -> None:
        """The cluster has the request; nobody wrote down the job."""
        for berth in self.berths.values():
            berth.kills = True
        self.sends()
        for berth in self.berths.values():
            berth.kills = False

    @step(turn=TURNS, other=OTHERS, one=PICK, where=PICK)
    def meanwhile(self, turn: str, other: str, one: int, where: int) -> None:
        """While a cluster is asked, something else happens."""
        here = "ab"[where % 2]
        more: dict[str, tuple[object, ...]] = {
            "attaches": (one, where),
            "is_switched_off": (here, 5),
            **dict.fromkeys(("detaches", "deletes", "takes_by_force"), (one,)),
            **dict.fromkeys(("cancels", "runs"), (here, one)),
        }
        then = partial(getattr(self, other), *more.get(other, ()))
        for berth in self.berths.values():
            berth.meanwhile = then
        getattr(self, turn)()
        for berth in self.berths.values():
            berth.meanwhile = None

    @step(one=PICK, which=st.integers(1, 3), failed=st.booleans())
    def hears_of_an_older_one(self, one: int, which: int, failed: bool) -> None:
        """What is told of an older verb, or of a step that is over, comes too late."""
        busy = [way for way in self.records.under_way if way.volume_id]
        if not busy:
            return
        with changing(Volume(pk=busy[one % len(busy)].volume_id)) as held:
            operation = under_way(held)
            if operation is None:
                return  # it is a snapshot's
            old = (held.generation - which, operation.step, operation.back)
            if which > 1 and operation.step:
                old = (held.generation, operation.step - 1, operation.back)
            before = Volume.objects.values().get(pk=held.pk)
            go_on(held, operation, Failed(*old, "late") if failed else Done(*old))
        assert Volume.objects.values().get(pk=held.pk) == before

    @step(where=WHERE, which=PICK)
    def hears_again(self, where: str, which: int) -> None:
        """An entry comes twice, or late."""
        backend, berth = self.backend(where), self.berths[where]
        if berth.heard:
            old = berth.heard[which % len(berth.heard)]
            number = backend.event_number
            with suppress(ClusterSilent):
                hear(backend, old, berth)
            Backend.objects.filter(pk=backend.pk).update(event_number=number)

    @step(where=WHERE)
    def loses(self, where: str) -> None:
        """What was told meanwhile is never heard."""
        backend, berth = self.backend(where), self.berths[where]
        with suppress(ClusterSilent):
            hear(backend, Heard(len(berth.heard), reset=True), berth)

    @step(
        one=PICK,
        where=PICK,
        verb=VERBS,
        how=HOW,
        heard=st.sampled_from(["forgets", "loses", "listens"]),
    )
    def goes_wrong(self, one: int, where: int, verb: str, how: str, heard: str) -> None:
        """A verb goes wrong at one step, and what is told of it is lost."""
        getattr(self, verb)(one, *((where,) if verb in WHERETO else ()))
        if how == "dies_after_asking":
            self.dies_after_asking()
        self.sends()
        for name in "ab":
            if how != "dies_after_asking":
                getattr(self, how)(name, 0)
            getattr(self, heard)(name)
        self.looks()

    @step()
    def somebody_compares(self) -> None:
        """An administrator has everything set right that a comparison finds."""
        with suppress(ClusterSilent):
            self.sets_right(list(Backend.objects.filter(offline=False)))

    # -- clusters ----------------------------------------------------------------------

    @step(where=WHERE, which=PICK)
    def runs(self, where: str, which: int) -> None:
        self.run_job(where, which)

    @step(where=WHERE, which=PICK)
    def cancels(self, where: str, which: int) -> None:
        self.run_job(where, which, cancel=True)

    @step(where=WHERE, which=PICK)
    def fails(self, where: str, which: int) -> None:
        self.berths[where].fails = lambda _request: True
        self.run_job(where, which)
        self.berths[where].fails = lambda _request: False

    @step(where=WHERE, which=PICK)
    def fails_late(self, where: str, which: int) -> None:
        """A job has done what it was asked for, and fails all the same."""
        self.run_job(where, which, ends="late")

    @step(where=WHERE, which=PICK)
    def fails_half_way(self, where: str, which: int) -> None:
        """A disk has left its instance, and its cluster gets no further with it."""
        self.run_job(where, which, ends="half-way")

    @step(where=WHERE)
    def forgets(self, where: str) -> None:
        """Ended jobs are archived; no feed tells of them any more."""
        berth = self.berths[where]
        for number, job in list(berth.jobs.items()):
            if job.state is not JobState.UNDER_WAY:
                del berth.jobs[number]
        berth.heard = [Heard(one.number) for one in berth.heard]

    @step(where=WHERE, deaf=st.booleans(), steps=st.integers(1, 6))
    def falls_silent(self, where: str, deaf: bool, steps: int) -> None:
        berth = self.berths[where]
        if where not in self.off:
            berth.silent, berth.deaf, berth.left = True, deaf, steps

    @step(where=WHERE, steps=st.integers(2, 12))
    def is_switched_off(self, where: str, steps: int) -> None:
        """An administrator has switched it off, and says so."""
        if where not in self.off:
            self.berths[where].loses_power()
            self.berths[where].left = steps
            Backend.objects.filter(clustername=where).update(offline=True)
            self.off.add(where)

    def tick(self) -> None:
        for where, berth in self.berths.items():
            berth.left -= berth.left > 0
            if berth.left == 0 and where in self.off:
                self._comes_back(where)
            elif berth.left == 0:
                berth.silent = berth.deaf = False

    def _comes_back(self, where: str) -> None:
        """It goes on with its jobs; then it lets go of what others have by now."""
        berth = self.berths[where]
        berth.boots()
        berth.run()
        self.sets_right([self.backend(where)])
        berth.run()
        Backend.objects.filter(clustername=where).update(offline=False)
        self.off.discard(where)
