# SPDX-License-Identifier: BSD-2-Clause
"""Names of volumes by a storage pool's pattern."""

import pytest

from moorage.errors import BadInput
from moorage.storage import naming

UUID = "6a1f0c52-9b1e-4c8b-8f36-0a1b2c3d4e5f"
INSTANCE = "web1.example.com"


def named(pattern: str, longest: int = 127, instance: str = INSTANCE) -> str:
    naming.check_pattern(pattern, longest, "nas")
    words = naming.words_for(UUID, instance, 3, "nas")
    return naming.volume_name(pattern, longest, words)


@pytest.mark.parametrize(
    ("pattern", "longest", "name"),
    [
        ("{uuid}", 36, UUID),
        ("{instance}-{index}-{uuid}", 127, f"{INSTANCE}-3-{UUID}"),
        ("{pool}.{short}", 18, "nas.0a1b2c3d4e5f"),
        ("{instance}-{short}", 18, "web1.-0a1b2c3d4e5f"),
        ("{instance}{instance}{short}", 18, "webweb0a1b2c3d4e5f"),
    ],
)
def test_a_pattern_gives_names_that_fit(pattern: str, longest: int, name: str) -> None:
    found = named(pattern, longest)
    assert found == name
    assert len(found) <= longest


def test_a_volume_for_nobody_has_a_name_too() -> None:
    assert named("{instance}-{short}", instance="") == "disk-0a1b2c3d4e5f"


@pytest.mark.parametrize(
    ("pattern", "longest", "said"),
    [
        ("{instance}-{index}", 127, "nothing in it is unique"),
        ("vol", 127, "two volumes could both be called 'vol'"),
        ("{uuid}", 18, "have at least 36 characters, and 18 are allowed"),
        ("{size}-{uuid}", 127, "there is no placeholder '{size}'"),
        ("a b {uuid}", 127, "is not a valid name of a volume"),
        ("../{uuid}", 127, "is not a valid name of a volume"),
        ("{uuid", 127, "two volumes could both be called"),
        ("{{short}}", 127, "is not a valid name of a volume"),
        ("{uuid}", 7, "has 8 to 254 characters"),
        ("{uuid}", 300, "has 8 to 254 characters"),
    ],
)
def test_a_pattern_that_gives_no_good_names_is_refused(
    pattern: str, longest: int, said: str
) -> None:
    with pytest.raises(BadInput) as caught:
        naming.check_pattern(pattern, longest, "nas")
    assert said in str(caught.value)
