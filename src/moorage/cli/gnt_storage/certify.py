# SPDX-License-Identifier: BSD-2-Clause
"""Hold a provider to its contract, and print a report that can be published."""

import json
import os
from pathlib import Path
from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fill, fills
from moorage.cli.follow import perform
from moorage.cli.gnt_disk.options import PARAM
from moorage.cli.options import JOB
from moorage.errors import BadInput, Failed


def _certify(call: Call) -> int:
    if path := call.option("report"):
        _check_writable(Path(path))
    found: dict[str, Any] = perform(call, **call.fields)
    from msgspec import convert  # noqa: PLC0415 - commands start without it

    from moorage.storage.certify import Report, as_text  # noqa: PLC0415

    report = convert(found, Report)
    as_json, text = json.dumps(found, indent=2), "\n".join(as_text(report))
    call.terminal.print(as_json if call.option("json") else text)
    if path:
        _write(Path(path), as_json if path.endswith(".json") else text)
    return 0 if report.passed else 1


def _check_writable(path: Path) -> None:
    """Refuse before the checks are made, which may take long, what none could keep."""
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise BadInput(f"no report can be written to {path}")


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content + "\n")
    except OSError as error:
        raise Failed(f"cannot write {path}: {error.strerror}") from error


COMMANDS = (
    Command(
        "certify",
        _certify,
        (Operand("PROVIDER", field="provider"),),
        (
            *fills("-n/--node --second-node --force-params -s/--size"),
            PARAM,
            fill("--check=checks", repeats=True),
            Option(("--report",), "a file for the report; JSON if so called", "FILE"),
            *JOB,
        ),
        examples={
            "gnt-storage certify shelf --second-node node2": (
                "every check, on two nodes"
            ),
            "gnt-storage certify -s 1G --report shelf.json shelf": (
                "larger volumes, and a report to publish"
            ),
        },
        operation="OP_EXT_STORAGE_CERTIFY",
    ),
)
