# SPDX-License-Identifier: BSD-2-Clause
"""Types that some projects see, and the types that projects have by default."""

import pytest
from site_of_people import Answer, Person, Site


@pytest.fixture
def slow(site: Site) -> str:
    """Return the id of a type that only administrators see."""
    body = {"volume_type": {"name": "slow", "os-volume-type-access:is_public": False}}
    return str(site.root.volumes("POST", "/types", body).body["volume_type"]["id"])


def act(site: Site, kind: str, action: str, who: Person | None = None) -> Answer:
    body = {f"{action}ProjectAccess": {"project": site.red.pk}}
    return (who or site.root).volumes("POST", f"/types/{kind}/action", body)


def names(who: Person) -> set[str]:
    answer = who.volumes("GET", "/types?is_public=none")
    return {one["name"] for one in answer.body["volume_types"]}


def test_a_type_is_seen_by_projects_that_have_access(site: Site, slow: str):
    new = {"volume": {"size": 1, "volume_type": "slow"}}
    assert names(site.anna) == {"fast"}
    assert site.anna.volumes("POST", "/volumes", new).status == 404
    assert act(site, slow, "add").status == 202
    assert names(site.anna) == {"fast", "slow"}
    assert names(site.bob) == {"fast"}
    assert site.anna.volumes("GET", f"/types/{slow}").status == 200
    assert site.bob.volumes("GET", f"/types/{slow}").status == 404
    made = site.anna.new_volume(volume_type="slow")
    listed = site.root.volumes("GET", f"/types/{slow}/os-volume-type-access")
    assert listed.body == {
        "volume_type_access": [{"volume_type_id": slow, "project_id": site.red.pk}]
    }
    assert act(site, slow, "remove").status == 202
    assert names(site.anna) == {"fast"}
    assert site.anna.look(made)["volume_type"] == "slow"
    assert site.anna.volumes("POST", "/volumes", new).status == 404


def test_access_is_an_administrators_matter(site: Site, slow: str):
    assert act(site, slow, "add", site.anna).status == 403
    assert act(site, slow, "add").status == 202
    again = act(site, slow, "add")
    assert again.status == 409
    assert again.fault.endswith("combination already exists.")
    assert act(site, slow, "remove").status == 202
    assert act(site, slow, "remove").status == 404
    assert act(site, "fast", "add").fault.endswith("to public volume type.")
    public = site.root.volumes("GET", "/types/fast/os-volume-type-access")
    assert public.fault == (
        "itemNotFound 404: Access list not available for public volume types."
    )
    odd = {"addProjectAccess": {"project": "red"}}
    assert site.root.volumes("POST", f"/types/{slow}/action", odd).status == 400


def test_a_project_has_a_default_type_of_its_own(site: Site, slow: str):
    path = f"/default-types/{site.red.pk}"
    body = {"default_type": {"volume_type": "slow"}}
    assert site.root.volumes("GET", path).status == 404
    hidden = site.root.volumes("PUT", path, body)
    assert hidden.status == 400
    assert "has no access" in hidden.fault
    act(site, slow, "add")
    told = {"default_type": {"project_id": site.red.pk, "volume_type_id": slow}}
    assert site.root.volumes("PUT", path, body).body == told
    assert site.root.volumes("GET", path).body == told
    every = site.root.volumes("GET", "/default-types").body
    assert every == {"default_types": [told["default_type"]]}
    assert site.anna.new_volume()["volume_type"] == "slow"
    assert site.bob.new_volume()["volume_type"] == "fast"
    usual = site.anna.volumes("GET", "/types/default").body["volume_type"]
    assert usual["id"] == slow
    refused = site.root.volumes("DELETE", f"/types/{slow}")
    assert refused.fault.startswith(
        f"badRequest 400: Volume Type {slow} is the default"
    )
    assert site.root.volumes("DELETE", path).status == 204
    assert site.anna.new_volume()["volume_type"] == "fast"
    assert site.root.volumes("GET", "/default-types", at="3.61").status == 404


def test_what_is_no_type_is_nobodys_default(site: Site):
    body = {"default_type": {"volume_type": "odd"}}
    answer = site.root.volumes("PUT", f"/default-types/{site.red.pk}", body)
    assert answer.fault == "badRequest 400: Volume type odd could not be found."


def test_no_type_is_encrypted(site: Site):
    answer = site.root.volumes("GET", "/types/fast/encryption")
    assert (answer.status, answer.body) == (200, {})
