# SPDX-License-Identifier: BSD-2-Clause
"""``snf-manage``: which commands there are, and what is said of others."""

from io import StringIO

import pytest
from django.core.management import CommandError, get_commands
from snf_manage import types

from moorage_cloud.manage import main
from moorage_cloud.management import elsewhere
from moorage_cloud.models import Backend


def test_no_command_that_is_here_is_said_to_be_elsewhere():
    ours = {name for name, app in get_commands().items() if app == "moorage_cloud"}
    assert {"image-list", "image-create", "volume-list"} <= ours
    assert not {name: why for name in ours if (why := elsewhere.told(name))}


def test_a_password_is_not_changed_by_what_leaves_tokens():
    """Django has a command for it that knows nothing of tokens."""
    assert "user-modify" in (elsewhere.told("changepassword") or "")
    assert "user-create" in (elsewhere.told("createsuperuser") or "")


def test_nobody_who_answers_is_nobody_who_is_sure(
    database: object, monkeypatch: pytest.MonkeyPatch
):
    assert database
    Backend.objects.create(clustername="a")
    monkeypatch.setattr("sys.stdin", StringIO())
    with pytest.raises(CommandError, match="nobody answered, and nothing was changed"):
        types("backend-remove a")
    assert Backend.objects.filter(clustername="a").exists()


def test_who_presses_control_c_sees_no_traceback(monkeypatch: pytest.MonkeyPatch):
    class Interrupted(StringIO):
        def read(self, _size: int | None = -1) -> str:
            raise KeyboardInterrupt

    line = "snf-manage user-create gus --password-file -"
    monkeypatch.setattr("sys.argv", line.split())
    monkeypatch.setattr("sys.stdin", Interrupted())
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 130


def test_help_lists_what_administrators_of_a_cloud_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("sys.argv", ["snf-manage", "help"])
    main()
    head, _, *names = capsys.readouterr().out.splitlines()
    assert head == "Type 'snf-manage help COMMAND' for help on one of these:"
    assert {"    volume-list", "    worker", "    migrate"} <= set(names)
    assert not {"    sendtestemail", "    startproject", "    flush"} & set(names)
