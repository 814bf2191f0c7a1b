# SPDX-License-Identifier: BSD-2-Clause
"""Scripts of administrators that run on nodes before and after an operation."""

from msgspec import Struct

from .verb import Verb


class HookRun(Struct, frozen=True, kw_only=True):
    """What came of one script.

    Attributes
    ----------
    script
        Its directory and name: ``instance-start-pre.d/10check``.
    problem
        Why it failed, with what it said; empty if it did not.
    """

    script: str
    problem: str = ""


class HookRuns(Struct, frozen=True, kw_only=True):
    """What came of the scripts of a phase, in the order in which they ran.

    Attributes
    ----------
    after
        Whether the node has scripts for the phase that follows.
    """

    runs: tuple[HookRun, ...] = ()
    after: bool = False


class RunHooks(Verb[HookRuns], frozen=True, kw_only=True, tag="hooks.run"):
    """Run the scripts of one phase, one after the other.

    Attributes
    ----------
    operation
        Which operation of which job they belong to: its scripts wait for each other.
    paths
        Names of directories, without the phase: ``instance-start``, ``global``.
    phase
        ``pre`` or ``post``.
    env
        Variables, without the prefix ``GANETI_``.
    """

    insists = False

    operation: str
    paths: tuple[str, ...]
    phase: str
    env: dict[str, str]

    def touched(self) -> frozenset[str]:
        """Return what stands for the scripts of the operation."""
        return frozenset({f"hooks of {self.operation}"})
