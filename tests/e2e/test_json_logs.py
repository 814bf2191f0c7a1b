# SPDX-License-Identifier: BSD-2-Clause
"""Logs as lines of JSON, when that is asked for."""

import asyncio
import json
import logging
import subprocess
import sys

import pytest

from moorage.daemons.log_limit import JsonLines, TextLines


def written(message: str, *words: object, **more: object) -> dict[str, object]:
    """Return what a formatter makes of a record."""
    told = logging.LogRecord("moorage.x", logging.INFO, "x", 1, message, words, None)
    for name, value in more.items():
        setattr(told, name, value)
    line = JsonLines().format(told)
    assert "\n" not in line
    found: dict[str, object] = json.loads(line)
    return found


def test_a_record_is_an_object_on_one_line() -> None:
    found = written("%s\nis\x1b[31m up", "node1", told={"request": "ab", "status": 200})
    assert found["message"] == "node1\nis\x1b[31m up"
    assert (found["level"], found["logger"]) == ("INFO", "moorage.x")
    assert (found["request"], found["status"]) == ("ab", 200)
    assert "job" not in found


def test_no_word_in_a_text_begins_a_line_of_its_own() -> None:
    words = ("INSTANCE_REMOVE(a\nentry 7, 00: submit)",)
    told = logging.LogRecord("moorage.x", logging.INFO, "x", 1, "of %s", words, None)
    line = TextLines("%(message)s").format(told)
    assert line == "of INSTANCE_REMOVE(a\\nentry 7, 00: submit)"


async def test_what_is_logged_within_a_job_has_its_number() -> None:
    async def work() -> dict[str, object]:
        return written("it works")

    assert (await asyncio.create_task(work(), name="job 42"))["job"] == 42
    assert "job" not in await asyncio.create_task(work(), name="job of mine")


def test_an_error_comes_with_its_trace() -> None:
    try:
        int("no good")
    except ValueError:
        found = written("it broke", exc_info=sys.exc_info())
    assert "ValueError: invalid literal" in str(found["error"])


@pytest.mark.parametrize("what", ["agent", "rapi run", "watcher"])
def test_a_format_that_is_none_is_refused(what: str, tmp_path) -> None:
    words = [*what.split(), "--log-format", "xml"]
    if what == "agent":
        words.append(str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "moorage.cli.moorage", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode
    assert "a log has the format text or json, not 'xml'" in done.stderr
