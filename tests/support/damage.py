# SPDX-License-Identifier: BSD-2-Clause
"""Random defects of JSON documents."""

import json
import random
from collections.abc import Iterator
from typing import Any

OF_OTHER_TYPES: tuple[Any, ...] = (
    *(None, True, -1, 0.5, 2**80, "", "mars", "\x00", [], {}, [[]], {"a": {"b": [1]}}),
    ["x", {"y": None}],
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in a document, with each key or index in it."""
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in list(keys):
            yield value, key
            yield from places(value[key])


def damage(document: Any, dice: random.Random) -> None:
    """Make one defect: missing, of another type, dangling, or what another has."""
    everywhere = list(places(document))
    holder, key = dice.choice(everywhere)
    kind = dice.randrange(4)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        holder[key] = dice.choice(OF_OTHER_TYPES)
    elif kind == 2:
        other, place = dice.choice(everywhere)
        holder[key] = json.loads(json.dumps(other[place]))
    elif isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    else:
        holder.append(holder[key])
