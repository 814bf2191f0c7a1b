# SPDX-License-Identifier: BSD-2-Clause
"""The administrators' pages, as a browser goes through them."""

import os
import re
import sys
from pathlib import Path
from subprocess import run

import pytest
from django.test import Client
from docks import Docks
from site_of_people import SECRET, Site

from moorage_cloud.identity import people
from moorage_cloud.identity.models import Assignment, Role, User
from moorage_cloud.models import (
    Backend,
    Limit,
    Operation,
    Server,
    Volume,
    VolumeType,
)
from moorage_cloud.verbs import NewVolume, attach, create
from moorage_cloud.verbs.quota import limits

DOOR = "hunter2 opens the door"


class Browser:
    """A browser, which keeps cookies and looks whether a form is really ours."""

    def __init__(self) -> None:
        self.client = Client(enforce_csrf_checks=True)

    def opens(self, path: str) -> str:
        """Open a page that must be there."""
        answer = self.client.get(f"/admin/{path}")
        assert answer.status_code == 200, (path, answer.status_code)
        return str(answer.content.decode())

    def sends(self, path: str, **given: object) -> str:
        """Fill in the form of a page; return what the next one says."""
        token = re.search('name="csrfmiddlewaretoken" value="(.*?)"', self.opens(path))
        assert token
        answer = self.client.post(
            f"/admin/{path}",
            {"csrfmiddlewaretoken": token[1], **given},
            follow=True,
            headers={"Origin": "http://testserver"},
        )
        assert answer.status_code == 200
        return str(answer.content.decode())

    def logs_in(self, name: str, password: str = SECRET) -> str:
        return self.sends("login/", username=name, password=password)


@pytest.fixture
def root(site: Site) -> Browser:
    """Return an administrator's browser."""
    Backend.objects.update(password=DOOR)
    assert site.root
    browser = Browser()
    assert "What there is" in browser.logs_in("root")
    return browser


@pytest.fixture
def volume(site: Site) -> Volume:
    docks = site.docks
    made = create(docks.anna, NewVolume(size=1, volume_type=docks.type, name="data"))
    attach(docks.anna, made, docks.servers["a1"])
    docks.settle()
    return docks.again(made)


def chosen(browser: Browser, kind: str, action: str, *things: object) -> str:
    """Choose an action for some rows of a list."""
    keys = [str(one.pk) for one in things]  # type: ignore[attr-defined]
    return browser.sends(f"cloud/{kind}/", action=action, _selected_action=keys)


def test_only_administrators_come_in(site: Site):
    assert site.root
    browser = Browser()
    for name, password in (("anna", SECRET), ("root", "guessed"), ("nobody", SECRET)):
        assert "Please enter a correct name and password" in browser.logs_in(
            name, password
        )
        assert browser.client.get("/admin/").status_code == 302
    cookies = Browser()
    cookies.logs_in("root")
    for one in ("sessionid", "csrftoken"):
        kept = cookies.client.cookies[one]
        assert (kept["httponly"], kept["samesite"]) == (True, "Strict")
        assert kept["path"] == "/admin/"
    answer = cookies.client.get("/admin/")
    assert answer.headers["X-Frame-Options"] == "DENY"
    bare = {"username": "root", "password": SECRET}
    assert cookies.client.post("/admin/login/", bare).status_code == 403


@pytest.mark.parametrize("how", ["role", "user", "project", "password"])
def test_who_is_none_any_more_is_out_with_the_next_page(
    site: Site, root: Browser, how: str
):
    person = site.root
    if how == "role":
        Assignment.objects.filter(user=person.user, role=Role.ADMIN).delete()
    elif how == "user":
        User.objects.filter(pk=person.user.pk).update(enabled=False)
    elif how == "project":
        site.service.enabled = False
        site.service.save()
    else:
        person.user.renew("another word")
    assert root.client.get("/admin/").status_code == 302


def test_a_new_password_ends_tokens(site: Site, root: Browser):
    words = {"new_password1": "quite another", "new_password2": "quite another"}
    told = root.sends("password_change/", old_password=SECRET, **words)
    assert "Your password was changed" in told
    root.opens("")
    assert people.user("root").check_password("quite another")
    assert site.root.volumes("GET", "/volumes").status == 401


def test_lists_show_what_there_is_and_find_it(
    site: Site, root: Browser, volume: Volume
):
    docks = site.docks
    assert isinstance(docks, Docks)
    docks.piers["a"].fails = lambda _request: True
    other = create(docks.anna, NewVolume(size=2, volume_type=docks.type, name="other"))
    attach(docks.anna, other, docks.servers["a2"])
    docks.settle()
    page = root.opens("cloud/volume/")
    assert "data" in page
    assert "a script failed" in page
    assert "other" not in root.opens("cloud/volume/?q=data")
    assert "data" in root.opens(f"cloud/volume/?q={volume.uuid}")
    assert "0 volumes" in root.opens("cloud/volume/?status__exact=error")
    page = root.opens("cloud/operation/?result__exact=failed")
    assert "a script failed" in page
    assert "1 operation" in page
    page = root.opens("cloud/operation/?under_way=yes")
    assert "0 operations" in page
    page = root.opens("cloud/server/?q=snf-a1")
    assert "1 server" in page
    assert "gigabytes" in root.opens("cloud/usage/")
    assert "shared" in root.opens("cloud/storagedomain/")
    assert "admin of service" in root.opens("identity/user/?q=root")
    assert "blue" in root.opens("identity/project/")
    for kind in ("snapshot", "volumetype", "outbox", "limit"):
        root.opens(f"cloud/{kind}/")


def test_no_page_shows_a_secret(site: Site, root: Browser):
    backend = Backend.objects.get(clustername="a")
    user = site.root.user
    for path in (
        "cloud/backend/",
        f"cloud/backend/{backend.pk}/change/",
        f"identity/user/{user.pk}/change/",
    ):
        page = root.opens(path)
        assert DOOR not in page
        assert people.user("root").password not in page


def test_words_are_changed_and_state_is_not(site: Site, root: Browser, volume: Volume):
    path = f"cloud/volume/{volume.pk}/change/"
    root.sends(
        path,
        name="new name",
        description="",
        delete_on_termination="on",
        status="available",
        size="99",
        project="mine",
    )
    found = site.docks.again(volume)
    assert (found.name, found.delete_on_termination) == ("new name", True)
    assert (found.status, found.size, found.project) == ("in-use", 1, "red")
    assert root.client.get("/admin/cloud/volume/add/").status_code == 403
    assert root.client.get(f"{path}../delete/").status_code in {403, 404}
    operation = Operation.objects.get()
    page = root.opens(f"cloud/operation/{operation.pk}/change/")
    assert 'name="result"' not in page
    kind = site.docks.type
    path = f"cloud/volumetype/{kind.pk}/change/"
    told = root.sends(path, name="other", description="words", is_public="on")
    assert "Volume Type fast has volumes: its name stays" in told
    root.sends(path, name="fast", description="words", is_public="on")
    kind.refresh_from_db()
    assert (kind.name, kind.description) == ("fast", "words")


def test_actions_are_the_verbs(site: Site, root: Browser, volume: Volume):
    docks = site.docks
    told = chosen(root, "volume", "set_available", volume)
    assert "by force if need be" in told
    assert docks.again(volume).status == "in-use"
    assert "Set to error: 1" in chosen(root, "volume", "set_error", volume)
    assert docks.again(volume).status == "error"
    assert "Taken by force: 1" in chosen(root, "volume", "force_detach", volume)
    docks.settle()
    assert docks.again(volume).status == "available"
    operation = Operation.objects.latest("pk")
    assert (operation.userid, operation.request_id) == (site.root.user.pk, "pages")
    told = chosen(root, "volume", "force_detach", volume)
    assert "is not attached" in told
    chosen(root, "server", "stop", docks.servers["a1"])
    docks.settle()
    docks.servers["a1"].refresh_from_db()
    assert docks.servers["a1"].operstate == "STOPPED"
    other = VolumeType.objects.create(name="slow", disk_template="ext_named")
    chosen(root, "volumetype", "make_default", other)
    assert VolumeType.objects.get(is_default=True) == other


def test_nothing_is_taken_from_a_silent_cluster_that_is_not_off(
    site: Site, root: Browser, volume: Volume
):
    docks = site.docks
    assert isinstance(docks, Docks)
    docks.piers["a"].silent = docks.piers["a"].deaf = True
    chosen(root, "volume", "detach", volume)
    docks.send()
    told = chosen(root, "volume", "force_detach", volume)
    assert "can be taken from it when an administrator has said" in told
    backend = Backend.objects.get(clustername="a")
    path = f"cloud/backend/{backend.pk}/change/"
    assert "two guests write to one disk" in root.opens(path)
    root.sends(path, offline="on", clustername="c", password="x")  # noqa: S106 - none
    backend.refresh_from_db()
    assert (backend.offline, backend.clustername) == (True, "a")
    assert backend.password == DOOR
    assert "Taken by force: 1" in chosen(root, "volume", "force_detach", volume)
    assert docks.again(volume).status == "available"


def test_a_limit_is_changed(root: Browser):
    one = Limit.objects.create(project="red", resource="volumes", limit=3)
    root.sends(f"cloud/limit/{one.pk}/change/", limit="7", project="blue")
    assert limits("red")["volumes"] == 7
    assert not Limit.objects.filter(project="blue").exists()


def test_the_pages_have_their_style(root: Browser):
    answer = root.client.get("/admin/static/admin/css/base.css")
    assert answer.status_code == 200
    answer.close()


def test_there_are_no_pages_unless_the_settings_say_where(tmp_path: Path):
    conf = tmp_path / "cloud.toml"
    conf.write_text(f'database = "{tmp_path}/db"\nkey_file = "{tmp_path}/key"\n')
    code = (
        "import django; django.setup()\n"
        "from django.test import Client\n"
        "answers = [Client().get(p) for p in ('/admin', '/admin/', '/admin/login/')]\n"
        "print([one.status_code for one in answers])\n"
        "print(dict(Client().get('/volume/').cookies))\n"
    )
    done = run(
        [sys.executable, "-c", code],
        env=os.environ | {"MOORAGE_CLOUD": str(conf)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.splitlines() == ["[404, 404, 404]", "{}"], done.stderr


def test_a_volumes_page_tells_its_story(root: Browser, site: Site):
    made = create(
        site.docks.anna,
        NewVolume(size=1, volume_type=site.docks.type, name="<b>data</b>"),
    )
    attach(site.docks.anna, made, site.docks.servers["a1"])
    Server.objects.filter(name="a1").update(name="<i>a1</i>")
    site.docks.settle()
    page = root.opens(f"cloud/volume/{made.pk}/change/")
    story = page.partition("its_story")[2]
    rows = re.findall("<tr><td>(.*?)</tr>", story)
    assert len(rows) == 2
    assert re.search(
        "<td>attach</td><td>done</td>.*<td>a</td>.*<td>take 1</td>", rows[1]
    )
    assert "&lt;i&gt;a1&lt;/i&gt;" in rows[1]
    assert "<i>a1" not in page
