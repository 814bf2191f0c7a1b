# SPDX-License-Identifier: BSD-2-Clause
"""Options that set instance policies, as they are typed."""

from moorage.model.ipolicy import DEFAULT, SIZES

SPEC = ",".join(f"{name}=8" for name in SIZES)


def test_bounds_of_the_cluster(master, typed) -> None:
    master.answers["QueryClusterInfo"] = {"ipolicy": DEFAULT}
    typed(
        f"gnt-cluster modify --ipolicy-bounds-specs min:{SPEC}/max:{SPEC} "
        f"--ipolicy-std-specs {SPEC} --ipolicy-disk-templates ext,sharedfile "
        "--ipolicy-vcpu-ratio 2.5 --ipolicy-spindle-ratio 8"
    )
    eights = dict.fromkeys(SIZES, 8)
    (op,) = master.ops
    assert op["ipolicy"] == {
        "minmax": [{"min": eights, "max": eights}],
        "std": eights,
        "disk-templates": ["ext", "sharedfile"],
        "vcpu-ratio": 2.5,
        "spindle-ratio": 8.0,
    }


def test_the_old_options_change_one_size(master, typed) -> None:
    master.answers["QueryClusterInfo"] = {"ipolicy": DEFAULT}
    typed("gnt-cluster modify --specs-mem-size min=64M,max=1T,std=2G")
    (op,) = master.ops
    (pair,) = op["ipolicy"]["minmax"]
    assert (pair["min"]["memory-size"], pair["max"]["memory-size"]) == (64, 1024**2)
    assert pair["max"]["cpu-count"] == DEFAULT["minmax"][0]["max"]["cpu-count"]
    assert op["ipolicy"]["std"]["memory-size"] == 2048


def test_a_group_lets_the_clusters_hold_again(master, typed) -> None:
    row = {"name": "rack1", "ipolicy": DEFAULT}
    master.answers["Query"] = {
        "fields": [],
        "data": [[[0, value] for value in row.values()]],
    }
    typed("gnt-group modify --ipolicy-bounds-specs default rack1")
    assert [op["ipolicy"] for op in master.ops] == [{"minmax": "default"}]


def test_slips_are_refused(master, typed) -> None:
    master.answers["QueryClusterInfo"] = {"ipolicy": DEFAULT}
    for words in (
        "--ipolicy-bounds-specs memory-size=1",
        "--ipolicy-bounds-specs min:wheels=4/max:wheels=4",
        "--ipolicy-std-specs memory-size=much",
        "--ipolicy-vcpu-ratio many",
        "--specs-cpu-count most=4",
        "--specs-cpu-count max=4 --ipolicy-std-specs cpu-count=1",
    ):
        screen = typed(f"gnt-cluster modify {words}")
        assert screen.status != 0, words
        assert "Traceback" not in screen.err
    assert master.ops == []


def test_the_overrides_are_typed(master, typed) -> None:
    master.result = ["node1"]
    both = "--ignore-ipolicy --ignore-capacity"
    typed(f"gnt-instance add -t diskless --no-install {both} web1")
    typed(f"gnt-instance migrate -f {both} web1")
    typed(f"gnt-instance failover -f {both} web1")
    typed(f"gnt-instance grow-disk {both} web1 0 1G")
    typed(f"gnt-disk grow {both} data1 1G")
    for op in master.ops:
        assert (op["ignore_ipolicy"], op["ignore_capacity"]) == (True, True)
    typed("gnt-disk add -t sharedfile -s 3T --ignore-capacity")
    assert master.ops[-1]["ignore_capacity"]
