# SPDX-License-Identifier: BSD-2-Clause
"""hspace: say how many instances still fit."""

import sys
from typing import Final

from moorage.cli.declaration import Options
from moorage.cli.htools import shell_vars, source
from moorage.cli.htools.print_space import PREFIX, Printer
from moorage.errors import BadInput, NoCapacity
from moorage.htools.constants import PAIRED, SPELLINGS, Fail
from moorage.htools.formats.simulate import size as parse_size
from moorage.htools.inst import Inst
from moorage.htools.placement.allocate import Asking, targets
from moorage.htools.placement.space import Filled, Filling, Safety, Size, fill, model
from moorage.htools.placement.tiered import fill_tiered
from moorage.htools.policy import Spec
from moorage.htools.state import State
from moorage.htools.survival.n1 import is_redundant

_SHOWN: Final = 20
"""Reasons that are told; more of them say the same of other nodes."""


def run(options: Options) -> int:
    """Say how many instances still fit."""
    return _Run(options).run()


def size(text: str) -> Size:
    """Return the size that ``disk,ram,cpu[,spindles]`` says."""
    parts = text.split(",")
    if not 3 <= len(parts) <= 4 or not all(part.isdecimal() for part in parts[2:]):
        raise BadInput(f"'{text}' is no size (disk,ram,cpu[,spindles])")
    cpus, *spindles = (int(part) for part in parts[2:])
    return Size(parse_size(parts[1]), parse_size(parts[0]), cpus, *(spindles or [1]))


def _of_spec(spec: Spec) -> Size:
    return Size(spec.memory, spec.disk, spec.cpus, spec.spindles)


class _Run:
    """One run: two fillings of the same cluster, and what is said about them."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.start = source.cluster(options).state
        policy = self.start.policy
        if not policy.templates:
            raise BadInput("null list of disk templates received from cluster")
        wanted = options.disk_template
        self.template = SPELLINGS[wanted] if wanted else policy.templates[0]
        use = options.spindle_use
        self.spindle_use = policy.standard.spindles if use is None else use
        self.out = Printer(options, self.start, self.template)

    def run(self) -> int:
        """Fill twice, and tell."""
        self.out.introduce()
        how = self._how()
        policy = self.start.policy
        asked = self.options.tiered_alloc
        sizes = [asked] if asked else [_of_spec(high) for _, high in policy.ranges]
        models = [self._model(size) for size in sizes]
        tiered = self._filled(
            "Tiered",
            sizes[0],
            None if how is None else fill_tiered(self.start, models, how),
        )
        self.out.print_tiered(tiered)
        standard = self.options.standard_alloc or _of_spec(policy.standard)
        filled = self._filled(
            "Standard",
            standard,
            None if how is None else fill(self.start, self._model(standard), how),
        )
        self.out.print_results(filled)
        if self.out.machine:
            shell_vars.show(PREFIX, OK=1)
        if self.options.explain:
            self._explain("Tiered", tiered, sizes[0], how)
            self._explain("Standard", filled, standard, how)
        if self.options.html is not None:
            self._picture(tiered, filled, standard)
        return 0

    def _picture(self, tiered: Filled, filled: Filled, standard: Size) -> None:
        """Draw both fillings; what machines read stays as it is."""
        from moorage.cli.htools.drawing import save_room  # noqa: PLC0415

        out = sys.stderr if self.out.machine else sys.stdout
        save_room(self.options, self.start, (tiered, filled), standard, out)

    def _explain(
        self, name: str, done: Filled, size: Size, how: Filling | None
    ) -> None:
        """Tell why not one more fits; programs read the keys only."""
        from moorage.htools.explain import capacity  # noqa: PLC0415 - start-up time

        if how is None:
            found = capacity.explain_unfilled(self.start)
        else:
            size = capacity.next_size(done, size)
            found = capacity.explain_full(
                done, size, self.template, self.spindle_use, how
            )
        told = f"MEM {size.mem}, DSK {size.disk}, CPU {size.cpu}"
        lines = found.sentences(_SHOWN) or ["it does fit"]
        out = sys.stderr if self.out.machine else sys.stdout
        out.write(f"{name}: why not one more of {told}\n")
        out.writelines(f"  - {line}\n" for line in lines)

    def _model(self, size: Size) -> Inst:
        return model(self.start, size, self.template, self.spindle_use)

    def _how(self) -> Filling | None:
        """Return how to fill; None when the cluster is in no state for it."""
        options = self.options
        # A master that tells storage units adds as it answers: see `Guard`.
        told = self.start.tells_units
        bad = [] if told else self.start.failing
        closed = set() if options.accept_existing else {node.group for node in bad}
        broken = self._broken_groups() if options.independent else []
        state = _without_groups(self.start, closed.union(broken))
        usable = [
            at
            for at, group in enumerate(state.groups)
            if group.alloc_policy != "unallocable"
        ]
        stopped = bad and not options.accept_existing
        if stopped and not (options.independent and usable):
            return None
        nodes = 2 if self.template == PAIRED else 1
        places = targets(state, nodes, Asking(), usable)
        if not places:
            few = "Not enough online nodes" if nodes == 2 else "No online nodes"
            raise NoCapacity(f"failure during allocation: {few}")
        safe = Safety(
            online_only=options.accept_existing,
            skip=broken,
            start=self.start if told else None,
        )
        unchecked = options.no_capacity_checks or (told and self.start.is_alone)
        limit = options.max_length
        return Filling(
            places,
            None if unchecked else safe,
            None if limit == -1 else max(0, limit),
            mirrors=told,
        )

    def _broken_groups(self) -> list[int]:
        """Return groups that cannot lose a node now."""
        online_only = self.options.accept_existing
        parts = self.start.split()
        return [
            at for at, view in parts if not is_redundant(view, online_only=online_only)
        ]

    def _filled(self, name: str, size: Size, filled: Filled | None) -> Filled:
        done = filled or Filled({Fail.N1: 1}, self.start)
        self.out.print_spec(name, size)
        if self.out.verbose > 1:
            sys.stderr.write(f"{name} allocation map\n{self.out.map(done)}")
        self.out.show_nodes(f"{name} allocation", done.state)
        word = name.lower()
        source.save(self.options.save, word, f"after {word} allocation", done.state)
        return done


def _without_groups(state: State, closed: set[int]) -> State:
    groups = tuple(
        group._replace(alloc_policy="unallocable") if at in closed else group
        for at, group in enumerate(state.groups)
    )
    return state._replace(fleet=state.fleet.replaced(groups=groups))
