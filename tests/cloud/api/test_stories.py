# SPDX-License-Identifier: BSD-2-Clause
"""Stories and what is in the way, over HTTP: what users see of it, and what not."""

from site_of_people import Site


def attach(site: Site, made: dict[str, object], server: str) -> None:
    body = {"volumeAttachment": {"volumeId": made["id"]}}
    path = f"/{site.server(server)}/os-volume_attachments"
    assert site.anna.servers("POST", path, body).status == 200
    site.docks.settle()


def test_a_user_reads_the_story_and_an_administrator_where_it_was(site: Site):
    made = site.anna.new_volume()
    attach(site, made, "a1")
    path = f"/volumes/{made['id']}/story"
    for who in (site.anna, site.rita):
        told = who.volumes("GET", path).body["story"]
        assert [one["what"] for one in told] == ["create", "attach"]
        assert told[1]["server_id"] == site.server("a1")
        assert told[1]["ended_at"]
        assert not {"cluster", "epoch", "jobs"} & told[1].keys()
    (_, attached) = site.root.volumes("GET", path).body["story"]
    assert (attached["cluster"], attached["jobs"]) == (
        "a",
        [{"act": "take", "job_id": 1}],
    )
    assert site.bob.volumes("GET", path).status == 404


def test_who_got_a_volume_is_not_told_what_it_was_before(site: Site):
    made = site.anna.new_volume()
    attach(site, made, "a1")
    path = f"/{site.server('a1')}/os-volume_attachments/{made['id']}"
    assert site.anna.servers("DELETE", path).status == 202
    site.docks.settle()
    body = {"transfer": {"volume_id": made["id"], "name": None}}
    offer = site.anna.volumes("POST", "/volume-transfers", body).body["transfer"]
    body = {"accept": {"auth_key": offer["auth_key"]}}
    path = f"/volume-transfers/{offer['id']}/accept"
    assert site.bob.volumes("POST", path, body).status == 202
    path = f"/volumes/{made['id']}/story"
    told = site.bob.volumes("GET", path).body["story"]
    assert [(one["what"], one["user_id"]) for one in told] == [
        ("transfer", site.bob.user.pk)
    ]
    everything = site.root.volumes("GET", path).body["story"]
    assert len(everything) == 5


def test_a_long_story_comes_in_parts(site: Site):
    made = site.anna.new_volume()
    for size in range(2, 6):
        body = {"os-extend": {"new_size": size}}
        where = f"/volumes/{made['id']}/action"
        assert site.anna.volumes("POST", where, body).status == 202
    path = f"/volumes/{made['id']}/story"
    last = site.anna.volumes("GET", path + "?limit=2").body["story"]
    assert [one["size"] for one in last] == [4, 5]
    before = f"{path}?limit=2&before={last[0]['number']}"
    assert [one["size"] for one in site.anna.volumes("GET", before).body["story"]] == [
        2,
        3,
    ]
    assert site.anna.volumes("GET", path + "?limit=0").status == 400


def test_what_is_in_the_way_is_explained(site: Site):
    made = site.anna.new_volume()
    path = f"/volumes/{made['id']}/explain/{{}}"
    here = path.format(site.server("b1"))
    told = site.anna.volumes("GET", here)
    assert told.body == {
        "volume_id": made["id"],
        "server_id": site.server("b1"),
        "attachable": True,
        "hindrances": [],
    }
    attach(site, made, "a1")
    told = site.rita.volumes("GET", here).body
    assert not told["attachable"]
    (one,) = told["hindrances"]
    assert one["change"] == "detach it from there"
    assert not one["waits"]
    assert site.bob.volumes("GET", here).status == 404
    mine = site.bob.new_volume()
    theirs = f"/volumes/{mine['id']}/explain/{site.server('b1')}"
    assert site.bob.volumes("GET", theirs).status == 404
