# SPDX-License-Identifier: BSD-2-Clause
"""The administrator's commands about users and projects."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from site_of_people import Site

from moorage_cloud.identity.models import Project, User
from moorage_cloud.models import Limit, Volume

pytestmark = pytest.mark.usefixtures("database")


def types(line: str, *words: str) -> str:
    out = StringIO()
    call_command(*line.split(), *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def word(tmp_path: Path) -> str:
    """Return a file with a password."""
    made = tmp_path / "word"
    made.write_text("a word that opens\nand nothing more\n")
    return str(made)


def test_projects_and_users_are_made(word: str):
    assert "Created project 'green' with ID" in types("project-create green")
    made = types(f"user-create gus --project green --password-file {word}")
    assert "Created user 'gus' with ID" in made
    gus = User.objects.get()
    assert gus.check_password("a word that opens")
    assert gus.default_project == Project.objects.get()
    (row,) = json.loads(types("user-list -o json"))
    assert row["roles"] == "member@green"
    (row,) = json.loads(types("project-list -o json"))
    assert (row["name"], row["members"]) == ("green", 1)

    types("user-modify gus --grant admin@green --withdraw member@green --disable")
    (row,) = json.loads(types("user-list -o json"))
    assert (row["roles"], row["enabled"]) == ("admin@green", False)
    types("project-modify green --disable")
    assert not Project.objects.get().enabled


def test_a_new_password_ends_tokens(site: Site, word: str):
    Path(word).write_text("another")
    assert site.anna.volumes("GET", "/volumes").status == 200
    types(f"user-modify anna --password-file {word}")
    assert site.anna.volumes("GET", "/volumes").status == 401
    assert User.objects.get(name="anna").check_password("another")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("project-create green", "there is a project 'green' already"),
        ("user-create gus --project blue", "there is no project 'blue'"),
        ("user-create gus --password-file /bin/true", "cannot be read"),
        ("user-create gus --password-file /nowhere", "cannot be read"),
        ("user-create gus --password-file /dev/null", "a user needs a password"),
        ("user-modify gus --enable", "there is no user 'gus'"),
    ],
)
def test_what_cannot_be_is_one_sentence(line: str, words: str):
    types("project-create green")
    with pytest.raises(CommandError, match=words):
        types(line)
    assert not User.objects.exists()


def test_a_role_is_one_that_is_there(word: str):
    types("project-create green")
    types(f"user-create gus --password-file {word}")
    with pytest.raises(CommandError, match="roles are reader, member, admin"):
        types("user-modify gus --grant king@green")


def test_who_comes_back_has_no_token_of_before(site: Site):
    types("user-modify anna --disable")
    types("user-modify anna --enable")
    assert site.anna.volumes("GET", "/volumes").status == 401


def test_what_commands_name_is_what_its_project_sees(site: Site):
    types("volume-create --size 1 --user anna --project red --name mine")
    (one,) = site.anna.volumes("GET", "/volumes/detail").body["volumes"]
    assert (one["name"], one["user_id"]) == ("mine", site.anna.user.pk)
    types("quota --project red --set volumes=1")
    more = site.anna.volumes("POST", "/volumes", {"volume": {"size": 1}})
    assert more.status == 413


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("volume-create --size 1 --user anna --project rde", "no project 'rde'"),
        ("volume-create --size 1 --user ana --project red", "no user 'ana'"),
        ("quota --project rde --set volumes=1", "no project 'rde'"),
        ("quota --project red --set volumes=-5", "say --project NAME"),
        ("quota --project red --set volums=5", "no resource 'volums'"),
        ("quota --project red --set volumes_quick=5", "no resource 'volumes_quick'"),
    ],
)
def test_what_nothing_is_called_is_refused(site: Site, line: str, words: str):
    with pytest.raises(CommandError, match=words):
        types(line)
    assert not Volume.objects.exists()
    assert not Limit.objects.exists()
    assert site.red.name == "red"


def test_a_name_does_not_speak_to_the_administrators_terminal(site: Site):
    site.anna.new_volume(name="a\x1b]0;b\x07\n1  forged", description="\x1b[2J")
    told = types("volume-list --fields id,name")
    assert len(told.strip().splitlines()) == 3
    assert r"a\x1b]0;b\x07\n1  forged" in told
    number = str(Volume.objects.get().pk)
    assert "\x1b" not in told + types("volume-show", number)
    (row,) = json.loads(types("volume-list --fields name -o json"))
    assert row["name"].startswith("a\x1b")


def test_nobody_is_without_a_name(word: str):
    for name in ("", " ", "a\nb"):
        with pytest.raises(CommandError, match="is no name"):
            types("project-create", name)
        with pytest.raises(CommandError, match="is no name"):
            types("user-create", name, "--password-file", word)
    assert not User.objects.exists()
    assert not Project.objects.exists()


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", StringIO())
    with pytest.raises(CommandError, match=r"no terminal .* --password-file"):
        types("user-create gus")
