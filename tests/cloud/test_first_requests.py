# SPDX-License-Identifier: BSD-2-Clause
"""The first requests of a web process may come at the same moment, in threads.

Two threads for which msgspec looks at one type for the first time crash the process
(:mod:`moorage.record_types`). So nothing is left to be looked at.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from installation import Cloud

LATE = """
import json, sys
from msgspec import Struct, ValidationError, convert
from moorage_cloud.web import application


def kinds(kind):
    for one in kind.__subclasses__():
        yield one
        yield from kinds(one)


def note(frame, event, _):
    if event == "call" and frame.f_code.co_name == "get_class_annotations":
        late.append(frame.f_locals["obj"].__name__)


application()
late, known = [], {*kinds(Struct)}
own = [one for one in known if one.__module__.startswith("moorage_cloud.")]
sys.setprofile(note)
for kind in own:
    before = len(late)
    try:
        convert({}, kind)
    except ValidationError:
        pass
    except TypeError:  # nothing reads it
        del late[before:]
sys.setprofile(None)
print(json.dumps([len(own), late]))
"""


def test_all_that_requests_say_is_looked_at_before(
    tmp_path: Path, database: str
) -> None:
    cloud = Cloud(tmp_path, database)
    told = subprocess.run(
        [sys.executable, "-c", LATE],
        env={**os.environ, **cloud.environment},
        check=True,
        stdout=subprocess.PIPE,
    )
    number, late = json.loads(told.stdout)
    assert number > 50
    assert late == []
