# SPDX-License-Identifier: BSD-2-Clause
"""The steps of the cloud's tour: a volume that goes from one cluster to another."""

from moorage.daemons import devcloud as clouds
from moorage.daemons.devcloud import CLUSTERS, DOOR_PORT, PROVIDER

from .claims import claim
from .cloud_stage import CloudStage
from .steps import KERNEL

DOMAIN = "san"
_BRIEF = "-c name -c size -c status"
_PLACE = "-c Device -c 'Volume ID'"


def two_clusters(at: CloudStage) -> str:
    """Start two clusters whose nodes see the same storage, a guest on each."""
    cloud = at.cloud
    guest = f" --guest {cloud.guest}" if cloud.guest else ""
    kernel = f" -H {KERNEL.format(cloud.guest)}" if cloud.guest else ""
    for name in CLUSTERS:
        at.typist.enter(
            f"MOORAGE_DOOR_ROLE=adopt moorage up {cloud.root}/{name} --nodes 1"
            f" --hypervisor {cloud.hypervisor}{guest}"
        )
        at.enter(name)
    clouds.share_storage(cloud)
    at.typist.say(f"both have the provider {PROVIDER}, with images in {cloud.storage}")
    for name in CLUSTERS:
        _go_to(at, name)
        told = at.at[name].type(f"gnt-storage diagnose {PROVIDER}")
        claim("--> valid" in told, f"provider {PROVIDER} is not valid on {name}")
        at.at[name].type(
            f"gnt-instance add -t diskless --no-nics -n node1{kernel} web-{name}"
        )
    return "two clusters that do not know of each other, and one directory of volumes"


def _go_to(at: CloudStage, name: str) -> None:
    at.typist.say(f'$ eval "$(moorage env {at.cloud.root}/{name})"')


def two_doors(at: CloudStage) -> str:
    """Open the doors of both for the cloud: RAPI over HTTPS, and a user there."""
    for name in CLUSTERS:
        place, hands = at.cloud.path / name, at.at[name]
        address = at.cloud.cluster(name).address("node1")
        _go_to(at, name)
        settings = {
            "address": address,
            "socket": f"{place}/master/door.sock",
            "certificate": f"{place}/rapi.pem",
            "users": f"{place}/rapi.users",
            "tokens": f"{place}/rapi.tokens",
        }
        lines = [f'{key} = "{value}"\n' for key, value in settings.items()]
        (place / "rapi.toml").write_text("".join([f"port = {DOOR_PORT}\n", *lines]))
        at.secrets[name] = clouds.secret()
        hands.type(f"moorage rapi certificate --settings {place}/rapi.toml {address}")
        hands.enter(
            f"echo {at.secrets[name]} | moorage rapi password cloud --role adopt"
            f" >{place}/rapi.users; chmod 600 {place}/rapi.users"
        )
        at.typist.say(f"$ moorage rapi run --settings {place}/rapi.toml &")
        clouds.open_door(at.cloud, name)
    return "each cluster has a certificate of its own, and one user that may come in"


def the_service(at: CloudStage) -> str:
    """Tell the service of clusters, storage, people and servers, and start it."""
    cloud, hands = at.cloud, at.typist
    cloud.settings.write_text(
        f'database = "{cloud.service}/cloud.sqlite"\n'
        f'key_file = "{cloud.service}/secret-key"\n'
        f'policy_file = "{cloud.service}/policy.yaml"\n'
    )
    hands.say(f"$ export MOORAGE_CLOUD={cloud.settings}")
    hands.type("snf-manage migrate --verbosity 0")
    for name in CLUSTERS:
        hands.type(
            f"snf-manage backend-add --clustername {name} --domain {DOMAIN}"
            f" --address {cloud.cluster(name).address('node1')} --port {DOOR_PORT}"
            f" --user cloud --pass {at.secrets[name]}"
            f" --ca {cloud.path}/{name}/master/keys/ca.pem"
        )
    hands.type(
        f"snf-manage volume-type-create -n fast --disk-template ext_{PROVIDER}"
        f" --domain {DOMAIN} --default --specs GNT-EXTP:access=userspace"
    )
    hands.type("snf-manage project-create red")
    password = cloud.service / "anna.password"
    at.secrets["anna"] = clouds.secret()
    password.write_text(at.secrets["anna"])
    hands.type(f"snf-manage user-create anna --project red --password-file {password}")
    for name in CLUSTERS:
        hands.enter(
            f"snf-manage server-create --backend-id {name} --instance web-{name}"
            " --user anna --project red | head -n 1"
        )
    hands.say("$ snf-manage worker &")
    hands.say(f"$ snf-manage serve --bind {clouds.web_host(cloud)}:{clouds.WEB_PORT} &")
    address = clouds.serve(cloud)
    _write_clouds(at, address)
    hands.say(f"$ export OS_CLIENT_CONFIG_FILE={cloud.clouds_yaml} OS_CLOUD=moorage")
    told = hands.type("openstack server list -c Name -c Status --sort-column Name")
    claim(all(f"web-{name}" in told for name in CLUSTERS), "a server is not there")
    at.look_in()
    return f"anna has two servers, on two clusters, and one address: {address}"


def _write_clouds(at: CloudStage, address: str) -> None:
    """Write the file by which OpenStack's clients find the service."""
    at.cloud.clouds_yaml.touch(0o600)
    at.cloud.clouds_yaml.write_text(
        "clouds:\n"
        "  moorage:\n"
        "    auth:\n"
        f"      auth_url: {address}/identity/v3\n"
        "      username: anna\n"
        f"      password: {at.secrets['anna']}\n"
        "      project_name: red\n"
        "      user_domain_id: default\n"
        "      project_domain_id: default\n"
        '    volume_api_version: "3.71"\n'
    )


def a_volume(at: CloudStage) -> str:
    """Make a volume, attach it to the server on cluster a, and write to it."""
    at.typist.type(f"openstack volume create --size 1 data {_BRIEF}")
    claim(at.images() == [], "there is something on the storage before it is needed")
    at.typist.type(f"openstack server add volume web-a data {_PLACE}")
    at.until("volumes", "status", "in-use")
    at.sum = at.inside("a").fill(at.disk("a"))
    _tell(at, "a", "wrote", at.sum)
    at.typist.type("openstack volume list -c Name -c Status -c Size -c 'Attached to'")
    said = at.typist.refused("openstack server add volume web-b data")
    claim("Traceback" not in said, "the refusal is no sentence")
    return f"{at.images()[0]} is on the storage, and a second owner is refused"


def _tell(at: CloudStage, name: str, verb: str, found: str) -> None:
    at.typist.say(f"{_who(at, name)} {verb} a file: {found[:16]}…")


def _who(at: CloudStage, name: str) -> str:
    """Return who has a look: a guest, or this program in the place of one."""
    stands_in = "the tour, in the place of " if at.simulated else ""
    return f"{stands_in}web-{name} on cluster {name}"


def it_moves(at: CloudStage) -> str:
    """Detach it, attach it to the server on cluster b, and read the same bytes."""
    at.typist.type("openstack server remove volume web-a data")
    at.until("volumes", "status", "available")
    claim(at.disks() == 0, "a cluster still has the disk")
    at.typist.type(f"openstack server add volume web-b data {_PLACE}")
    at.until("volumes", "status", "in-use")
    seen = at.inside("b").checksum(at.disk("b"))
    _tell(at, "b", "read", seen)
    claim(seen == at.sum, f"the checksum is {seen}, not {at.sum}")
    at.typist.type(f"openstack server volume list web-b {_PLACE}")
    return "the same bytes on another cluster; in between, none of them knew the volume"


def it_grows(at: CloudStage) -> str:
    """Extend it, and take a snapshot of it, while the server uses it."""
    at.typist.type("openstack volume set --size 2 data")
    at.until("volumes", "size", 2)
    at.until("volumes", "status", "in-use")
    inside, disk = at.inside("b"), at.disk("b")
    at.wait(lambda: inside.size(disk) == 2048, "the server sees 2048 MiB")
    at.typist.say(f"{_who(at, 'b')} sees {inside.size(disk)} MiB")
    at.typist.type(f"openstack volume snapshot create --volume data before {_BRIEF}")
    at.until("snapshots", "status", "available")
    at.typist.type("openstack volume snapshot list -c Name -c Status -c Size")
    claim(inside.checksum(disk) == at.sum, "the volume changed while it grew")
    return f"{len(at.images())} images on the storage: the volume and its snapshot"


def it_ends(at: CloudStage) -> str:
    """Delete all of it, and compare what is on record with what there is."""
    at.typist.type("openstack volume snapshot delete before")
    at.gone("snapshots")
    at.typist.type("openstack server remove volume web-b data")
    at.until("volumes", "status", "available")
    at.typist.type("openstack volume delete data")
    at.gone("volumes")
    claim(at.images() == [], f"the storage still has {', '.join(at.images())}")
    claim(at.disks() == 0, "a cluster still has a disk")
    at.typist.type("snf-manage quota --check")
    at.typist.type("snf-manage reconcile-servers --detect-all")
    return "no byte, no disk and no quota is left behind"


CLOUD_STEPS = (
    two_clusters,
    two_doors,
    the_service,
    a_volume,
    it_moves,
    it_grows,
    it_ends,
)
