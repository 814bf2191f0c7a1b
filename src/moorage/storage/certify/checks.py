# SPDX-License-Identifier: BSD-2-Clause
"""The checks of a certification, in the order in which they are made."""

from collections.abc import Callable
from dataclasses import dataclass

from moorage.errors import MoorageError

from . import alone, crash, links, together
from .bench import (
    FAILS,
    MOOT,
    PASSES,
    Bench,
    Broken,
    CheckResult,
    Doing,
    NotApplicable,
)

Work = Callable[[Bench], Doing[str | None]]
"""What is done on one node; returns a remark for the report, if there is one."""

FIRST, SECOND = 0, 1


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a provider has to do.

    Attributes
    ----------
    rows
        The requirements that it stands for.
    what
        What is asked, as a sentence for the report.
    parts
        What is done, and on which of the two nodes.
    """

    name: str
    rows: tuple[str, ...]
    what: str
    parts: tuple[tuple[int, Work], ...]

    @property
    def needs_two(self) -> bool:
        """Whether it takes two nodes."""
        return any(node == SECOND for node, _ in self.parts)

    def judged(
        self, part: int, at: Bench, earlier: CheckResult | None = None
    ) -> Doing[CheckResult]:
        """Do one part, unless an earlier one said all; return what came of it.

        Parameters
        ----------
        earlier
            What came of the part before, or of the check whether it runs at all.
        """
        if earlier and earlier.check != self.name:
            if earlier.verdict == FAILS:
                broken = f"it does not run at all: see {earlier.check}"
                return CheckResult(check=self.name, verdict=MOOT, why=broken)
            earlier = None
        if earlier and earlier.verdict != PASSES:
            return earlier
        remark = earlier.why if earlier else ""
        try:
            why = yield from self.parts[part][1](at)
        except NotApplicable as error:
            return CheckResult(check=self.name, verdict=MOOT, why=str(error))
        except (Broken, MoorageError) as error:
            return CheckResult(check=self.name, verdict=FAILS, why=str(error))
        return CheckResult(check=self.name, verdict=PASSES, why=why or remark)


def _one(name: str, rows: str, do: Work) -> Check:
    return Check(name, tuple(rows.split()), _said(do), ((FIRST, do),))


def _two(name: str, rows: str, what: str, *does: Work) -> Check:
    """Return a check whose parts change between the nodes, the first one first."""
    parts = tuple((number % 2, do) for number, do in enumerate(does))
    return Check(name, tuple(rows.split()), what, parts)


def _said(do: Work) -> str:
    return " ".join((do.__doc__ or "").split()).replace("``", "")


RUNS = "runs"
"""The check without which no other one says anything."""

CHECKS: tuple[Check, ...] = (
    _one("runs", "S0-25 S0-28", alone.runs),
    _one("verify-accepts", "S0-31", alone.verify_accepts),
    _one("verify-refuses", "S0-31 S0-62", alone.verify_refuses),
    _one("create", "S0-25 S0-39 S0-51", alone.create),
    _one("create-twice", "S0-25", alone.create_twice),
    _one("create-foreign", "S0-25 S0-50", alone.create_foreign),
    _one("attach-twice", "S0-28", alone.attach_twice),
    _one("attach-output", "S0-51 S0-69", alone.attach_output),
    _one("device", "S0-51", alone.device),
    _one("uri", "S0-65 S0-67 S0-72", alone.uri),
    _one("data-stays", "S0-28 S0-29", alone.data_stays),
    _one("detach-twice", "S0-29", alone.detach_twice),
    _one("setinfo", "S0-30 S0-43", alone.setinfo),
    _one("grow", "S0-27 S0-40", alone.grow),
    _one("grow-twice", "S0-27", alone.grow_twice),
    _one("grow-open", "S0-27 S0-55", alone.grow_open),
    _one("remove", "S0-26 S0-42", alone.remove),
    _one("remove-absent", "S0-26 S0-50", alone.remove_absent),
    _one("absent", "S0-50 S0-52", alone.absent),
    _one("odd-name", "S0-38", alone.odd_name),
    _one("long-name", "S0-38", alone.long_name),
    _one("nameless", "S0-44", alone.nameless),
    _one("apart", "S0-38", alone.apart),
    _one("same-cname", "S0-38 S0-44", alone.same_cname),
    _one("snapshot", "S0-32 S0-47 S0-48", alone.snapshot),
    _one("snapshot-twice", "S0-32", alone.snapshot_twice),
    _one("snapshot-apart", "S0-32 S0-54", alone.snapshot_apart),
    _one("open-twice", "S0-33 S0-34 S0-55 S0-56", alone.open_twice),
    _one("epoch-rises", "S0-55", alone.epoch_rises),
    _one("list", "S0-35", alone.listed),
    _one("capacity", "S0-35", alone.capacity),
    _one("link", "S0-50 S0-51", links.refused),
    _one("crash-create", "S0-25", crash.create),
    _one("crash-attach", "S0-28", crash.attach),
    _one("crash-grow", "S0-27", crash.grow),
    _one("crash-remove", "S0-26", crash.remove),
    _one("crash-snapshot", "S0-32", crash.snapshot),
    _two(
        "shared",
        "S0-11 S0-28",
        "The other node sees the same data, in both directions, or no volume.",
        *(together.write, together.read, together.read_back),
    ),
    _two(
        "shared-grow",
        "S0-11 S0-27",
        "The other node sees the size that a volume has grown to.",
        *(together.grow, together.grown),
    ),
    _two(
        "both-attached",
        "S0-28 S0-49",
        "A volume can be attached on two nodes at once, as in a migration.",
        *(together.make, together.both),
    ),
    _two(
        "exclusive",
        "S0-49 S0-55",
        "A volume that one node has opened alone, no other can open.",
        *(together.hold, together.contend),
    ),
    _two(
        "migration",
        "S0-49 S0-55 S0-56",
        "Two nodes share a volume; when the first has closed it, the second is alone.",
        *(together.share, together.join, together.leave, together.alone),
    ),
    _two(
        "stale-epoch",
        "S0-55",
        "A node with a lower epoch than another one's cannot open the volume.",
        *(together.early, together.late, together.stale),
    ),
    _two(
        "shared-remove",
        "S0-11 S0-26",
        "A volume can be removed on another node than the one that made it.",
        *(together.let_go, together.removed, together.gone),
    ),
)


def named(name: str) -> Check:
    """Return a check by its name; raise `KeyError` if there is none."""
    return _BY_NAME[name]


_BY_NAME = {one.name: one for one in CHECKS}
