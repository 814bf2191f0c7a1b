# SPDX-License-Identifier: BSD-2-Clause
"""Running the hooks of this node."""

from collections.abc import Mapping

from moorage.protocol import HookRun, HookRuns, Report, RunHooks

from .context import NodeContext

VERSION = "2"
"""Of Ganeti's interface of hooks."""


async def run(at: NodeContext, args: RunHooks, _report: Report) -> HookRuns:
    """Run the scripts of a phase, directory by directory."""
    runs: list[HookRun] = []
    for path in args.paths:
        env = _environment(args, path)
        runs += await at.machine.run_hooks(f"{path}-{args.phase}.d", env)
    after = any(at.machine.has_hooks(f"{path}-post.d") for path in args.paths)
    return HookRuns(runs=tuple(runs), after=args.phase == "pre" and after)


def _environment(args: RunHooks, path: str) -> Mapping[str, str]:
    known = {
        **args.env,
        "HOOKS_VERSION": VERSION,
        "HOOKS_PHASE": args.phase,
        "HOOKS_PATH": path,
    }
    return {f"GANETI_{name}": value for name, value in known.items()}


VERBS = (RunHooks.done_by(run),)
"""Every verb of hooks."""
