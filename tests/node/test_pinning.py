# SPDX-License-Identifier: BSD-2-Clause
"""Which of the node's processors a guest's threads run on."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from moorage.node.hypervisors.kvm import pinning


@pytest.fixture
def thread() -> Iterator[int]:
    with subprocess.Popen(("sleep", "600")) as child:
        yield child.pid
        child.kill()


def test_a_mask_counts_beyond_the_processors_of_the_agent(thread: int) -> None:
    """Who started the agent may have bound it; its guests have the node's."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(own)})
    try:
        pinning.bind(thread, ((0, 9999),), "web1")
    finally:
        os.sched_setaffinity(0, own)
    assert os.sched_getaffinity(thread) >= own
    assert pinning.online() >= own


def test_a_mask_of_others_leaves_a_thread_as_it_is(
    thread: int, caplog: pytest.LogCaptureFixture
) -> None:
    before = os.sched_getaffinity(thread)
    pinning.bind(thread, ((9998, 9999),), "web1")
    assert os.sched_getaffinity(thread) == before
    assert "no processor of its cpu_mask" in caplog.text


def test_a_thread_that_has_ended_is_passed_over() -> None:
    with subprocess.Popen("true") as child:
        child.wait()
        pinning.bind(child.pid, ((0, 0),), "web1")
