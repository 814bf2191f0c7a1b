# SPDX-License-Identifier: BSD-2-Clause
"""What a node notes of the exports that it began."""

from pathlib import Path

import pytest

from moorage.errors import BadInput
from moorage.node.records.drafts import Drafts


def test_a_mark_is_kept_until_its_export_ends(tmp_path: Path) -> None:
    """An agent that starts finds it; the next export of the name gets another one."""
    mark = Drafts(tmp_path).begin("web1")
    again = Drafts(tmp_path)
    assert again.begin("web1") == mark
    assert again.left() == {"web1": mark}
    again.end("web1")
    again.end("web1")
    assert Drafts(tmp_path).left() == {}
    assert again.begin("web1") != mark


@pytest.mark.parametrize("name", ["../web1", "/etc/passwd", "", ".."])
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    drafts = Drafts(tmp_path / "drafts")
    with pytest.raises(BadInput, match="is not the name of an export"):
        drafts.begin(name)
    assert [*tmp_path.rglob("*")] == [tmp_path / "drafts"]
