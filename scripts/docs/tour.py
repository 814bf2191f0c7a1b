# SPDX-License-Identifier: BSD-2-Clause

"""Compare the tour that a page shows with one that was made, or record it anew.

``make run | tee FILE; python scripts/docs/tour.py FILE`` puts what was printed into
``docs/start/tour.md``, with the checkout in ``/srv/moorage``.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "start" / "tour.md"
CHECKOUT, CLUSTER = "/srv/moorage", "/srv/moorage/.build/run"
"""Where the record has the sources, and where the cluster that is toured."""

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


def record() -> str:
    """Return the tour that the page shows."""
    found = _RECORD.search(PAGE.read_text())
    if found is None:
        raise ValueError(f"{PAGE} shows no tour")
    return found[0]


def titles(told: str) -> list[str]:
    """Return what the steps of a tour are called, in order."""
    return _TITLE.findall(told)


def differences(told: str, cluster: Path, guest: Path) -> list[str]:
    """Return the lines in which a tour was another one than the page shows.

    Parameters
    ----------
    told
        What the tour printed.
    cluster, guest
        The directories that it had for its cluster, and for the image of its guests.
    """
    places = ((cluster, CLUSTER), (guest, f"{CHECKOUT}/.build/guest"), (ROOT, CHECKOUT))
    for place, shown in places:
        told = told.replace(str(place), shown)
    shown, printed = list(_steady(record())), list(_steady(told))
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
    """Put the tour that a file holds into the page."""
    told = "".join(Path(one).read_text() for one in files).replace(str(ROOT), CHECKOUT)
    told = told.replace("env .build/run", f"env {CLUSTER}")
    begin = told.index("  1. ")
    text = PAGE.read_text()
    PAGE.write_text(_RECORD.sub(lambda _: told[begin:], text, count=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
