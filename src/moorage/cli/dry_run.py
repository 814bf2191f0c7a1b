# SPDX-License-Identifier: BSD-2-Clause
"""What ``--dry-run`` shows: the tasks, in order, with the commands behind them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def plan_lines(plan: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a numbered plan.

    Parameters
    ----------
    plan
        A list of ``{"what", "node", "final", "commands"}``, as the engine returns it.
    """
    if not plan:
        yield "Nothing would be done."
        return
    yield "It would (nothing was changed):"
    width = len(str(len(plan)))
    for number, task in enumerate(plan, 1):
        where = f"  [{task['node']}]" if task.get("node") else ""
        final = "; no way back from here" if task.get("final") else ""
        yield f"  {number:{width}}. {task.get('what', '')}{where}{final}"
        for command in task.get("commands") or ():
            yield f"  {'':{width}}    $ {_typed(command)}"


def _typed(command: Any) -> str:  # noqa: ANN401
    """Return a command as one would type it."""
    from shlex import join  # noqa: PLC0415 - for plans only

    return join(command) if isinstance(command, list) else str(command)
