# SPDX-License-Identifier: BSD-2-Clause
"""What a storage vendor can publish: which checks a provider passes, and which not."""

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from moorage.model.values import Scalar

from .bench import FAILS, MOOT, PASSES, CheckResult
from .checks import CHECKS

_WIDTH = max(len(one.name) for one in CHECKS)
_SIGNS = {PASSES: "passes", FAILS: "FAILS ", MOOT: "n/a   "}


class Scripts(Struct, frozen=True, kw_only=True):
    """What was certified.

    Attributes
    ----------
    version
        Of Moorage on the node.
    system
        The node's kernel.
    files
        SHA-256 of each file of the provider, by its path in it.
    """

    version: str
    system: str = ""
    files: dict[str, str] = {}


class Report(Struct, frozen=True, kw_only=True):
    """A certification.

    Attributes
    ----------
    nodes
        Names of those that it was made on.
    date
        Of its beginning, as ``2026-11-22T09:30:00Z``.
    left
        Names of volumes that could not be removed.
    passed
        Whether no check failed, and nothing was left.
    """

    provider: str
    nodes: tuple[str, ...]
    date: str
    params: dict[str, Scalar]
    size: int
    scripts: Scripts
    checks: tuple[CheckResult, ...]
    left: tuple[str, ...] = ()
    passed: bool


def as_text(report: Report) -> Iterator[str]:
    """Yield the lines of a report that people read."""
    sums = Counter(one.verdict for one in report.checks)
    yield f"ExtStorage provider: {report.provider}"
    yield f"Certified:           {report.date} on {' and '.join(report.nodes)}"
    yield f"By:                  Moorage {report.scripts.version}"
    if report.scripts.system:
        yield f"System:              {report.scripts.system}"
    given = " ".join(f"{key}={value}" for key, value in sorted(report.params.items()))
    yield f"Parameters:          {given or 'none'}"
    yield f"Volumes of:          {report.size} MiB"
    yield f"Result:              {_result(report, sums)}"
    yield ""
    known = {one.name: one for one in CHECKS}
    for one in report.checks:
        check = known[one.check]
        rows = " ".join(check.rows)
        yield f"{_SIGNS[one.verdict]}  {one.check:{_WIDTH}}  {check.what} [{rows}]"
        yield from (f"        {line}" for line in one.why.splitlines())
    if report.left:
        yield ""
        yield "Left behind, to be removed by hand:"
        yield from (f"  {name}" for name in report.left)
    yield ""
    yield "SHA-256 of its files:"
    yield from (f"  {digest}  {path}" for path, digest in report.scripts.files.items())


def _result(report: Report, sums: Counter[str]) -> str:
    verdict = "passed" if report.passed else "NOT passed"
    figures = ", ".join(f"{sums[word]} {word}" for word in (PASSES, FAILS, MOOT))
    return f"{verdict} ({figures})"
