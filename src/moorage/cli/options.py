# SPDX-License-Identifier: BSD-2-Clause
"""Options that many commands share."""

from moorage.errors import BadInput

from .command import Option
from .fields import fill
from .option_syntax import backend_parameters, truth

PRIORITIES = {"low": 10, "normal": 0, "high": -10}
NO_SSH = "nodes are reached over TLS, not by ssh"


def moot(flag: str, why: str, metavar: str = "", *, short: str = "") -> Option:
    """Return an option of Ganeti's that asks for what is so here in any case.

    Parameters
    ----------
    why
        The end of the sentence "accepted, as in Ganeti: ...".
    metavar
        What stands for its value; empty for a switch.
    short
        Its other form, as ``-v``.
    """
    told = f"accepted, as in Ganeti: {why}"
    return Option(_flags(flag, short), told, metavar, moot=True)


def refused(flag: str, why: str, metavar: str = "", *, short: str = "") -> Option:
    """Return an option of Ganeti's that is refused in a sentence.

    Parameters
    ----------
    why
        The end of the sentence "--flag is not supported: ...".
    metavar, short
        As of :func:`moot`.
    """
    told = f"not supported: {why}"
    return Option(_flags(flag, short), told, metavar, refused=why)


def never(flag: str, why: str) -> Option:
    """Return an option of Ganeti's that takes no for an answer, and refuses yes.

    Parameters
    ----------
    why
        The end of the sentence "yes is not supported: ...".
    """

    def convert(text: str) -> bool:
        if truth(text):
            raise BadInput(f"yes is not supported: {why}")
        return False

    told = f"accepted, as in Ganeti: no, as it is here in any case; {why}"
    return Option((flag,), told, "no", convert, moot=True)


def _flags(flag: str, short: str) -> tuple[str, ...]:
    return (short, flag) if short else (flag,)


DEBUG = Option(("-d", "--debug"), "accepted; MOORAGE_DEBUG=1 shows traces", moot=True)
PRIORITY = Option(
    ("--priority",),
    "how early the job runs: low, normal or high",
    "PRIORITY",
    choices=tuple(PRIORITIES),
)
JSON = Option(("--json",), "print JSON for programs: raw values, MiB and seconds")
FORCE = Option(("-f", "--force"), "do not ask; go on where it is safe to insist")
YES = Option(("--yes",), "answer every question with yes")
NO_INPUT = Option(("--no-input",), "never ask: without --yes or -f, refuse")

JOB = (
    Option(("--submit",), "submit the job, print its number, do not wait"),
    Option(("--print-jobid",), "print the job's number before anything else"),
    Option(("--dry-run",), "show the tasks that would be done; change nothing"),
    PRIORITY,
    Option(("--reason",), "why, for the job's reason trail", "TEXT"),
    JSON,
    DEBUG,
)
"""Options of each command that submits a job."""

ASKING = (FORCE, YES, NO_INPUT)
"""Options of each command that asks before it goes on."""
INSISTING = (FORCE._replace(field=True), YES, NO_INPUT)
"""The same, where the operation is told of ``-f``, too."""

BACKEND_PARAMETERS = fill(
    "-B/--backend-parameters=beparams", convert=backend_parameters
)
NON_LIVE = Option(("--non-live",), "pause the guests while they move")
NO_WAIT_FOR_SYNC = fill(
    "--no-wait-for-sync=wait_for_sync",
    help="do not wait until both copies of disks are the same",
    value=False,
)
