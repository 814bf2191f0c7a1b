# SPDX-License-Identifier: BSD-2-Clause
"""Whoever can make a daemon complain cannot fill its disk with complaints."""

import asyncio
import errno
import logging
from collections.abc import Iterator

import pytest

from moorage.daemons import log_limit


@pytest.fixture
def now() -> list[float]:
    return [0.0]


@pytest.fixture
def log(
    caplog: pytest.LogCaptureFixture, now: list[float]
) -> Iterator[pytest.LogCaptureFixture]:
    filtering = log_limit.Calm(lambda: now[0])
    caplog.handler.addFilter(filtering)
    yield caplog
    caplog.handler.removeFilter(filtering)


async def test_a_lack_of_descriptors_does_not_fill_the_log(
    log: pytest.LogCaptureFixture,
) -> None:
    loop = asyncio.get_running_loop()
    lack = OSError(errno.EMFILE, "Too many open files")
    for number in range(1000):
        log_limit.complain(loop, {"message": f"socket {number}", "exception": lack})
    assert log.text.count("Too many open files") == 60
    assert "Traceback" not in log.text
    log_limit.complain(loop, {"message": "something else"})
    assert "(940 messages were left out) something else" in log.text


def test_after_a_while_it_complains_again(
    log: pytest.LogCaptureFixture, now: list[float]
) -> None:
    for _ in range(2):
        for _ in range(100):
            logging.getLogger("x").warning("again %s", 1)
        now[0] += 61
    assert len(log.records) == 120
    assert log.records[60].getMessage() == "(40 messages were left out) again 1"


def test_what_ends_a_daemon_is_told_whatever_came_before(
    log: pytest.LogCaptureFixture,
) -> None:
    for number in range(100):
        level = logging.CRITICAL if number == 99 else logging.WARNING
        logging.getLogger("x").log(level, "line %s", number)
    assert "(39 messages were left out) line 99" in log.text
