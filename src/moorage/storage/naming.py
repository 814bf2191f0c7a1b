# SPDX-License-Identifier: BSD-2-Clause
"""Names of volumes: a storage pool may want them in its own words, and short.

Arrays and volume managers limit how long a name can be, and administrators like to read
whose volume it is. A pattern is text with ``{placeholders}``, one of which is unique.
"""

import re
from collections.abc import Mapping

from moorage.errors import BadInput
from moorage.storage.validation import check_name

UNIQUE = ("uuid", "short")
"""36 characters; or the last 12 hexadecimal digits of it."""
PLACEHOLDERS = (*UNIQUE, "instance", "index", "pool")
NOBODY = "disk"
"""What stands for the instance in the name of a volume that was made for none."""
SHORTEST, LONGEST = 8, 254
"""Characters that the limit of a pattern can be."""

_FIELD = re.compile(r"\{([^{}]*)\}")
_SHORT = 12
_SHAPES = {
    "uuid": "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "short": "[0-9a-f]{12}",
    "instance": "[A-Za-z0-9_.+-]+",
    "index": "[0-9]{1,2}",
}
"""What stands for each placeholder, as a regular expression."""
_SAMPLE = "0123456789ab"


def check_pattern(pattern: str, longest: int, pool: str) -> str:
    """Return a pattern for names of volumes; an empty one is the template's own.

    Parameters
    ----------
    longest
        Characters that a name may have.
    pool
        Name of the storage pool.

    Raises
    ------
    BadInput
        If two volumes could get one name, or a name could be too long or odd.
    """
    if not SHORTEST <= longest <= LONGEST:
        raise BadInput(
            f"the longest name of a volume has {SHORTEST} to {LONGEST} characters, "
            f"not {longest}"
        )
    if not pattern:
        return pattern
    unknown = [name for name in _FIELD.findall(pattern) if name not in PLACEHOLDERS]
    if unknown:
        told = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        raise BadInput(
            f"there is no placeholder '{{{unknown[0]}}}' in names of volumes: "
            f"there is {told}"
        )
    if not any(f"{{{name}}}" in pattern for name in UNIQUE):
        raise BadInput(
            f"two volumes could both be called '{pattern}': nothing in it is unique",
            hint="add {uuid}, or {short} for 12 characters of it",
        )
    _check_length(pattern, longest, pool)
    return pattern


def _check_length(pattern: str, longest: int, pool: str) -> None:
    sample = {"uuid": "0" * 36, "short": _SAMPLE, "index": "15", "pool": pool}
    least = _filled(pattern, {**sample, "instance": "x"})
    check_name("volume", least)
    if len(least) > longest:
        raise BadInput(
            f"names like '{pattern}' have at least {len(least)} characters, and "
            f"{longest} are allowed",
            hint="{short} takes 12 characters, {uuid} 36",
        )


def volume_name(pattern: str, longest: int, words: Mapping[str, str]) -> str:
    """Return the name of a new volume.

    The name of the instance is cut to what the others leave of `longest` characters.

    >>> words = {"instance": "web1.example.com", "index": "0", "short": "0a1b2c3d4e5f"}
    >>> volume_name("{instance}-{index}-{short}", 24, words)
    'web1.exam-0-0a1b2c3d4e5f'
    """
    whole = _filled(pattern, words)
    times = pattern.count("{instance}")
    if not times or len(whole) <= longest:
        return whole
    instance = words["instance"]
    kept = max(1, len(instance) - -(-(len(whole) - longest) // times))
    return _filled(pattern, {**words, "instance": instance[:kept]})


def could_be(pattern: str, pool: str, name: str) -> bool:
    """Whether a volume may have been named by a pattern.

    >>> could_be("{instance}-{short}", "fast", "web1-0a1b2c3d4e5f")
    True
    >>> could_be("{instance}-{short}", "fast", "web1-backup")
    False
    """
    shapes = _SHAPES | {"pool": re.escape(pool)}
    parts = _FIELD.split(pattern)  # text and placeholders in turn
    shape = "".join(
        shapes.get(part, "") if at % 2 else re.escape(part)
        for at, part in enumerate(parts)
    )
    return bool(pattern) and re.fullmatch(shape, name) is not None


def words_for(unique: str, instance: str, index: int, pool: str) -> dict[str, str]:
    """Return what stands for each placeholder.

    Parameters
    ----------
    unique
        A fresh uuid.
    instance
        Name of the instance that the volume is made for; empty for none.
    """
    return {
        "uuid": unique,
        "short": unique.replace("-", "")[-_SHORT:],
        "instance": instance or NOBODY,
        "index": f"{index}",
        "pool": pool,
    }


def _filled(pattern: str, words: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda found: words.get(found[1], ""), pattern)
