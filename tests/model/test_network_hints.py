# SPDX-License-Identifier: BSD-2-Clause
"""What is no network is refused with one that may have been meant."""

import pytest

from moorage.errors import BadInput
from moorage.model.networks import checked_subnet


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("192.0.2.5/24", "192.0.2.0/24"),
        ("foo", "192.0.2.0/24"),
        ("2001:db8::5/64", "2001:db8::/64"),
        ("2001:db8::/64", "--network=192.0.2.0/24 --network6=2001:db8::/64"),
    ],
)
def test_the_hint_is_of_the_same_kind(word: str, hint: str) -> None:
    with pytest.raises(BadInput) as caught:
        checked_subnet(word)
    assert caught.value.hint == hint
