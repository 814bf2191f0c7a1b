"""What DRBD 8.4 said on two real nodes, read."""

from moorage.storage.drbd_status import Resource, devices

PROC = """version: 8.4.11 (api:1/proto:86-101)
srcversion: B536C32A3EADA868561EFD9
 0: cs:SyncSource ro:Primary/Secondary ds:UpToDate/Inconsistent C r-----
    ns:1868 nr:0 dw:0 dr:1868 al:8 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:63668
\t[=>..................] sync'ed: 11.8% (63668/65536)K
\tfinish: 0:01:35 speed: 620 (620) K/sec
 1: cs:Unconfigured
 3: cs:Connected ro:Secondary/Primary ds:UpToDate/UpToDate C r-----
    ns:0 nr:67584 dw:67584 dr:0 al:8 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:0
 4: cs:WFConnection ro:Primary/Unknown ds:UpToDate/DUnknown C r-----
    ns:0 nr:0 dw:0 dr:0 al:8 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:65280
"""


def test_a_sync_in_the_middle() -> None:
    first, second, third = devices(PROC)
    assert (first.minor, first.copying, first.in_sync) == (0, True, False)
    assert (first.percent, first.seconds) == (11.8, 95)
    assert (second.minor, second.in_sync, second.role) == (3, True, "Secondary")
    assert (third.connected, third.in_sync, third.peer_disk) == (
        False,
        False,
        "DUnknown",
    )


def test_a_node_without_devices() -> None:
    assert devices("") == ()
    assert devices(PROC.partition(" 0:")[0]) == ()


def test_a_resource_that_is_not_set_up() -> None:
    assert Resource.read("") == Resource()


def test_a_resource_without_a_disk_and_without_a_peer() -> None:
    told = """resource resource0 {
    options {
    }
    net {
        cram-hmac-alg   \t"md5";
    }
    _this_host {
        volume 0 {
            device\t\t\tminor 0;
        }
    }
}
"""
    assert Resource.read(told) == Resource(known=True, device=True)
