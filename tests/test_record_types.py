# SPDX-License-Identifier: BSD-2-Clause
"""Threads that read records of one type for the first time, at the same moment."""

import subprocess
import sys

READING = """
import sys, threading
from msgspec import convert, defstruct
from moorage.record_types import look_at_types

kind = int
for number in range(40):
    fields = [(f"f{one}", list[kind] | None, None) for one in range(12)]
    kind = defstruct(f"S{number}", fields)
if "looked" in sys.argv:
    look_at_types()
sys.setswitchinterval(1e-6)
start = threading.Barrier(16)


def read():
    start.wait()
    convert({"f1": [{"f2": None}]}, kind)


threads = [threading.Thread(target=read) for _ in range(16)]
[one.start() for one in threads]
[one.join() for one in threads]
"""


def test_it_crashes_no_process_whose_types_were_looked_at() -> None:
    for _ in range(5):
        argv = [sys.executable, "-c", READING, "looked"]
        assert subprocess.run(argv, check=False).returncode == 0
