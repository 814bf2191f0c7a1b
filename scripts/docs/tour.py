# SPDX-License-Identifier: BSD-2-Clause

"""Compare the tour that a page shows with one that was made, or record it anew.

``make run | tee FILE; python scripts/docs/tour.py FILE`` puts what was printed into
``docs/start/tour.md``, with the checkout in ``/srv/moorage``. What ``make run CLOUD=1``
printed goes into ``docs/start/cloud-tour.md``.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CHECKOUT, CLUSTER = "/srv/moorage", "/srv/moorage/.build/run"
"""Where the record has the sources, and where the cluster that is toured."""


class Page(NamedTuple):
    """A page with a record, and where that has what is toured."""

    path: Path
    place: str


TOUR = Page(ROOT / "docs" / "start" / "tour.md", CLUSTER)
CLOUD = Page(ROOT / "docs" / "start" / "cloud-tour.md", "/srv/moorage/.build/cloud")
_RECORD = re.compile(r"(?<=^```text\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^ *\d+\. (.*)$", re.MULTILINE)
_VARIES = (
    (re.compile(r"\s+"), " "),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}\b"), "TIME"),
    (re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{16}…"), "HASH"),
    (re.compile(r"aa:00:00(:[0-9a-f]{2}){3}"), "MAC"),
    (re.compile(r"\bmoor[0-9a-f]{8}\b"), "BRIDGE"),
    (re.compile(r"/[0-9a-f]{12}\.\d+\.sock"), "/SOCKET"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "SECRET"),
    (re.compile(r"\b127\.\d+\.\d+\.1\b"), "ADDRESS"),
    (re.compile(r"\bdisk [0-9a-f]{8}-[0-9a-f-]+ tiny"), "disk PART tiny"),
    (re.compile(r"\[\d+\.\d s\]|\bin \d+ s\b"), "SPAN"),
    (re.compile(r'(?<=": )\d+'), "NUMBER"),
    (re.compile(r"\b\d+( and \d+)? ms\b|\b\d+(?= lines written)"), "NUMBER"),
    (re.compile(r"\b\d+ (of \d+ )?packets\b|\b\d+(?= came back)"), "NUMBER"),
    (re.compile(r"\b\d+ processes\b|\b[Pp]rocess \d+|\bjob (info )?\d+"), "NUMBER"),
    # Who has it depends on where the master was when it died.
    (re.compile(r"(?<=^data2 UUID ext 32M ).*"), "FATE"),
    (re.compile(r"(?<=^node\d)( [\d.]+[GT]){5}"), " ROOM"),
    (re.compile(r"answers: \S+,"), "answers: KERNEL,"),
    (re.compile(r"guests are executed by .*"), "guests are executed by SOMETHING"),
    (re.compile(r"(?<=use it with: ).*"), "COMMAND"),
)
_DYING, _BEHIND = "Kill the master in the middle", "the copy of the state on"


def record(page: Page = TOUR) -> str:
    """Return the tour that a page shows."""
    found = _RECORD.search(page.path.read_text())
    if found is None:
        raise ValueError(f"{page.path} shows no tour")
    return found[0]


def titles(told: str) -> list[str]:
    """Return what the steps of a tour are called, in order."""
    return _TITLE.findall(told)


def differences(told: str, cluster: Path, guest: Path, page: Page = TOUR) -> list[str]:
    """Return the lines in which a tour was another one than a page shows.

    Parameters
    ----------
    told
        What the tour printed.
    cluster, guest
        The directories that it had for its cluster, and for the image of its guests.
    """
    places = (
        (cluster, page.place),
        (guest, f"{CHECKOUT}/.build/guest"),
        (ROOT, CHECKOUT),
    )
    for place, shown in places:
        told = told.replace(str(place), shown)
    shown, printed = list(_steady(record(page))), list(_steady(told))
    return list(unified_diff(shown, printed, "shown", "printed", n=0, lineterm=""))


def _steady(told: str) -> Iterator[str]:
    """Yield the lines without what varies from tour to tour.

    The master that dies is killed where it happens to be, so only what is typed then is
    compared. Whether a command meets the news of a lost copy is a matter of moments.
    """
    title = ""
    for line in told[told.index("  1. ") :].splitlines():
        text = line.strip()
        if found := _TITLE.match(line):
            title = found[1]
        dying = title.startswith(_DYING) and not text.startswith("$ ")
        if not text or _BEHIND in text or (dying and not found):
            continue
        for pattern, word in _VARIES:
            text = pattern.sub(word, text)
        yield text


def main(files: Sequence[str]) -> int:
    """Put the tour that a file holds into its page."""
    told = "".join(Path(one).read_text() for one in files).replace(str(ROOT), CHECKOUT)
    page = CLOUD if "env .build/cloud" in told else TOUR
    told = told.replace("env .build/", f"env {CHECKOUT}/.build/")
    begin = told.index("  1. ")
    text = page.path.read_text()
    page.path.write_text(_RECORD.sub(lambda _: told[begin:], text, count=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
