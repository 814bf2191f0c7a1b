# SPDX-License-Identifier: BSD-2-Clause
"""Simulated DRBD: two devices that find each other, roles, generations, and syncing.

Enough of the real one to show what an operation does wrong: a second writer, a start
with old data, a split brain, a copy that stays behind.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from moorage.storage import Command, Output

from .arguments import Records

_PRIMARY, _SECONDARY, _UNKNOWN = "Primary", "Secondary", "Unknown"
_SPLIT = "split brain"
_OF_MINORS = frozenset(
    {"attach", "detach", "primary", "secondary", "wait-connect", "resize"}
    | {"disk-options"}
)
"""What is asked of a device that must be there."""
_OWN = frozenset({"protocol", "cram-hmac-alg", "shared-secret"})
_OWN |= {"after-sb-0pri", "after-sb-1pri"}
"""What a connection is told besides its tuning."""


@dataclass(slots=True)
class Drbd:
    """The mirrors of all simulated nodes.

    Attributes
    ----------
    devices
        By ``node minor``: ``resource``, ``data`` and ``meta`` (volumes), ``mine`` and
        ``other`` (addresses), ``secret``, ``role``, ``two``, ``size`` (MiB),
        ``left``: what is to be copied to it yet, in percent; and ``told``, the options
        of its disk and its connection.
    volumes
        The logical volumes. That of metadata has ``md``: the generation of the data
        (``gi``; empty when it was just made), those before it, and whether it is good.
    slow
        How many looks at ``/proc/drbd`` a sync takes; with 0 it is done at once.
    """

    devices: Records
    volumes: Records
    busy: Callable[[str, str], bool]
    slow: int = 0

    def answer(self, node: str, command: Command) -> Output:
        """Return what a program prints on `node`."""
        words = [word for word in command.argv if not word.startswith("--")]
        options = dict(
            word[2:].partition("=")[::2]
            for word in command.argv
            if word.startswith("--")
        )
        if words[0] == "drbdmeta":
            return self._meta(node, words)
        if words[1] in _OF_MINORS and f"{node} {words[2]}" not in self.devices:
            return Output(f"{words[2]}: Failure: (127) Device minor not allocated", 10)
        tool = getattr(self, f"_{words[1].replace('-', '_')}")
        output: Output = tool(node, words[2:], options)
        self._settle()
        return output

    def status(self, node: str) -> str:
        """Return ``/proc/drbd`` of a node; each look lets a sync go on."""
        self._copy_on(node)
        lines = ["version: 8.4.11 (api:1/proto:86-101)"]
        for key in sorted(self.devices):
            if key.startswith(f"{node} "):
                lines += self._line(key)
        return "\n".join(lines) + "\n"

    def size(self, node: str, minor: str) -> int | None:
        """Return the size of a device in MiB; None if there is none."""
        found = self.devices.get(f"{node} {minor}")
        return int(found["size"]) if found and found["data"] else None

    def write(self, node: str, minor: int, word: str) -> None:
        """Let a guest write to a device; the other copy gets it if it is in reach."""
        key = f"{node} {minor}"
        device = self.devices[key]
        if device["role"] != _PRIMARY:
            raise AssertionError(f"{key} is written to, and is no primary")
        peer = self._peer(key)
        if device["data"]:
            self._put(device["data"], data=word)
        if peer is None:
            md = self._md(key)
            generation = f"{md['gi']}{node[-1]}{word}"
            self._put(device["meta"], md=_next(md, generation))
        elif self.devices[peer]["data"]:
            self._put(self.devices[peer]["data"], data=word)

    def _settle(self) -> None:
        """Let devices that have found each other compare their generations."""
        for key in sorted(self.devices):
            peer = self._peer(key)
            if peer is None or peer < key or not self._both(key, peer):
                continue
            mine, other = self._md(key), self._md(peer)
            if mine["gi"] == other["gi"]:
                continue
            if not mine["gi"] or mine["gi"] in other["past"]:
                self._sync(peer, key)
            elif not other["gi"] or other["gi"] in mine["past"]:
                self._sync(key, peer)
            else:
                for one in (key, peer):
                    self._set(one, mine="", other="", alone=_SPLIT)

    def _both(self, *keys: str) -> bool:
        return all(self.devices[key]["data"] for key in keys)

    def _sync(self, source: str, target: str) -> None:
        """Begin to copy, unless it is under way; what is not slow is done at once."""
        if not self.devices[target]["left"]:
            md = self._md(target) | {"good": False}
            self._put(self.devices[target]["meta"], md=md)
            self._set(target, left=100)
        if not self.slow:
            self._synced(source, target)

    def _synced(self, source: str, target: str) -> None:
        self._set(target, left=0)
        volumes, devices = self.volumes, self.devices
        data = volumes[devices[source]["data"]]["data"]
        self._put(devices[target]["data"], data=data)
        self._put(devices[target]["meta"], md=dict(self._md(source)))

    def _copy_on(self, node: str) -> None:
        """Let the syncs of a node's devices go on by one look."""
        for target in sorted(self.devices):
            source, left = self._peer(target), self.devices[target]["left"]
            if not (left and source and self._both(target, source)):
                continue
            if node in (target.split(" ")[0], source.split(" ")[0]):
                now = left - 100 / max(1, self.slow)
                self._set(target, left=now)
                if now <= 0:
                    self._synced(source, target)

    def _peer(self, key: str) -> str | None:
        """Return the device that one is connected with."""
        me = self.devices[key]
        wanted = (me["other"], me["mine"], me["secret"])
        for other, one in self.devices.items():
            if me["mine"] and (one["mine"], one["other"], one["secret"]) == wanted:
                return other
        return None

    def _md(self, key: str) -> dict[str, Any]:
        found: dict[str, Any] = self.volumes[self.devices[key]["meta"]]["md"]
        return found

    def _put(self, volume: str, **changes: Any) -> None:  # noqa: ANN401
        self.volumes[volume] = self.volumes[volume] | changes

    def _set(self, key: str, **changes: Any) -> None:  # noqa: ANN401
        self.devices[key] = self.devices[key] | changes

    def _line(self, key: str) -> Iterator[str]:
        device, peer = self.devices[key], self._peer(key)
        minor = key.split(" ")[1]
        other = self.devices[peer]["role"] if peer else _UNKNOWN
        disks = f"{self._disk(key)}/{self._disk(peer) if peer else 'DUnknown'}"
        yield (
            f" {minor}: cs:{self._connection(key, peer)} ro:{device['role']}/{other} "
            f"ds:{disks} C r-----"
        )
        left = device["left"] or (self.devices[peer]["left"] if peer else 0)
        if left and peer:
            yield f"\t[==>.........] sync'ed: {100 - left:4.1f}% (1024/65536)K"
            yield "\tfinish: 0:00:04 speed: 12,000 (12,000) K/sec"

    def _disk(self, key: str) -> str:
        if not self.devices[key]["data"]:
            return "Diskless"
        return "UpToDate" if self._md(key)["good"] else "Inconsistent"

    def _connection(self, key: str, peer: str | None) -> str:
        if peer is None:
            return "WFConnection" if self.devices[key]["mine"] else "StandAlone"
        if self.devices[key]["left"]:
            return "SyncTarget"
        return "SyncSource" if self.devices[peer]["left"] else "Connected"

    def _meta(self, node: str, words: list[str]) -> Output:
        volume = f"{node} {words[3].removeprefix('/dev/')}"
        if volume not in self.volumes:
            return Output(f"open({words[3]}) failed: No such file or directory", 20)
        if any(one["meta"] == volume for one in self.devices.values()):
            return Output(f"Device '{words[1]}' is configured!", 20)
        if words[5] == "apply-al":
            return Output()
        made: dict[str, Any] = {"gi": "", "past": [], "good": False}
        if words[5] == "set-gi":
            made |= {"gi": words[6].partition(":")[0], "good": True}
        self._put(volume, md=made)
        return Output()

    def _show(self, node: str, words: list[str], _options: dict[str, str]) -> Output:
        key = self._named(node, words[0])
        if key is None:
            return Output(f"'{words[0]}' not defined in your config", 20)
        return Output(_shown(self.devices[key], key.split(" ")[1]))

    def _named(self, node: str, resource: str) -> str | None:
        key = f"{node} {resource.removeprefix('resource')}"
        return key if key in self.devices else None

    def _new_resource(
        self, node: str, words: list[str], _options: dict[str, str]
    ) -> Output:
        key = f"{node} {words[0].removeprefix('resource')}"
        if key in self.devices:
            return Output("resource exists", 20)
        blank = dict.fromkeys(("data", "meta", "mine", "other", "secret"), "")
        own = {"device": False, "role": _SECONDARY, "two": False, "size": 0, "left": 0}
        own["told"] = {}
        self.devices[key] = blank | own
        return Output()

    def _new_minor(
        self, node: str, words: list[str], _options: dict[str, str]
    ) -> Output:
        self._set(f"{node} {words[1]}", device=True)
        return Output()

    def _attach(self, node: str, words: list[str], options: dict[str, str]) -> Output:
        minor, *paths, _ = words
        data, meta = (f"{node} {path.removeprefix('/dev/')}" for path in paths)
        size = int(options["size"].rstrip("s")) // 2048
        if data not in self.volumes or "md" not in self.volumes.get(meta, {}):
            return Output("No valid meta-data signature found", 20)
        if self.volumes[data]["size"] < size:
            return Output("Low.dev. smaller than requested DRBD-dev. size.", 20)
        self._set(f"{node} {minor}", data=data, meta=meta, size=size)
        return self._disk_options(node, [minor], options | {"set-defaults": ""})

    def _disk_options(
        self, node: str, words: list[str], options: dict[str, str]
    ) -> Output:
        if "on-io-error" not in options:
            return Output("an error of its disk would reach the guest", 20)
        told = {k: v for k, v in options.items() if k not in ("size", "set-defaults")}
        self._tell(f"{node} {words[0]}", disk=told)
        return Output()

    def _tell(self, key: str, **told: dict[str, str]) -> None:
        self._set(key, told=self.devices[key]["told"] | told)

    def _detach(self, node: str, words: list[str], _options: dict[str, str]) -> Output:
        key = f"{node} {words[0]}"
        peer = self._peer(key)
        if self.devices[key]["role"] == _PRIMARY and not (peer and self._both(peer)):
            return Output("State change failed: need access to UpToDate data", 17)
        self._set(key, data="", meta="", left=0)
        return Output()

    def _connect(self, node: str, words: list[str], options: dict[str, str]) -> Output:
        key = f"{node} {words[0].removeprefix('resource')}"
        addresses = {"mine": words[1], "other": words[2]}
        self._set(key, **addresses, secret=options["shared-secret"], two=False)
        self._tell(key, net={k: v for k, v in options.items() if k not in _OWN})
        return Output()

    def _disconnect(self, node: str, words: list[str], _o: dict[str, str]) -> Output:
        for key, one in list(self.devices.items()):
            if key.startswith(f"{node} ") and one["mine"] == words[0]:
                self._set(key, mine="", other="", left=0)
        return Output()

    def _primary(self, node: str, words: list[str], options: dict[str, str]) -> Output:
        key = f"{node} {words[0]}"
        peer, md = self._peer(key), self._md(key)
        served = peer is not None and self._both(peer) and self._md(peer)["good"]
        writes = peer is not None and self.devices[peer]["role"] == _PRIMARY
        if writes and not self.devices[key]["two"]:
            return Output("State change failed: (-1) Multiple primaries", 11)
        if not md["good"] and not served:
            if "force" not in options:
                told = "State change failed: (-2) Need access to UpToDate data"
                return Output(told, 17)
            forced = _next(md, f"forced-{node}")
            self._put(self.devices[key]["meta"], md=forced | {"good": True})
        self._set(key, role=_PRIMARY)
        return Output()

    def _secondary(self, node: str, words: list[str], _o: dict[str, str]) -> Output:
        if self.busy(node, f"/dev/drbd{words[0]}"):
            return Output("Device is held open by someone", 11)
        self._set(f"{node} {words[0]}", role=_SECONDARY)
        return Output()

    def _down(self, node: str, words: list[str], _options: dict[str, str]) -> Output:
        key = self._named(node, words[0])
        if key and self.busy(node, f"/dev/drbd{key.split(' ')[1]}"):
            return Output("Device is held open by someone", 11)
        if key and self._needed(key):
            return Output("State change was refused by peer node", 11)
        if key:
            del self.devices[key]
        return Output()

    def _needed(self, key: str) -> bool:
        """Whether the other node writes, and has no good data of its own."""
        peer = self._peer(key)
        if peer is None or self.devices[peer]["role"] != _PRIMARY:
            return False
        return not (self.devices[peer]["data"] and self._md(peer)["good"])

    def _net_options(
        self, node: str, words: list[str], options: dict[str, str]
    ) -> Output:
        if "allow-two-primaries" not in options:
            for key, one in list(self.devices.items()):
                if key.startswith(f"{node} ") and one["mine"] == words[0]:
                    self._tell(key, net=one["told"].get("net", {}) | options)
            return Output()
        wanted = options["allow-two-primaries"] == "yes"
        for key, one in list(self.devices.items()):
            if not (key.startswith(f"{node} ") and one["mine"] == words[0]):
                continue
            peer = self._peer(key)
            roles = {one["role"], self.devices[peer]["role"] if peer else ""}
            if not wanted and roles == {_PRIMARY}:
                return Output("Need to allow two primaries first", 10)
            for side in (key, *([peer] if peer else [])):  # the peer is told
                self._set(side, two=wanted)
        return Output()

    def _wait_connect(
        self, node: str, words: list[str], _options: dict[str, str]
    ) -> Output:
        return Output(code=0 if self._peer(f"{node} {words[0]}") else 5)

    def _resize(self, node: str, words: list[str], options: dict[str, str]) -> Output:
        key, size = f"{node} {words[0]}", int(options["size"].rstrip("s")) // 2048
        peer = self._peer(key)
        if peer is None:
            return Output("The peer is not connected", 10)
        both = [self.volumes[self.devices[one]["data"]]["size"] for one in (key, peer)]
        if min(both) < size:
            return Output("Low.dev. smaller than requested DRBD-dev. size.", 20)
        for one in (key, peer):
            self._set(one, size=size)
        return Output()


def _next(md: dict[str, Any], generation: str) -> dict[str, Any]:
    return md | {"gi": generation, "past": [*md["past"], md["gi"]]}


def _shown(device: dict[str, Any], minor: str) -> str:
    """Return a resource in the form of ``drbdsetup show``."""
    lines = [f"resource resource{minor} {{", "    options {", "    }", "    net {"]
    if device["two"]:
        lines.append("        allow-two-primaries\tyes;")
    lines.append("    }")
    if device["mine"]:
        other, mine = (device[one].replace("ipv4:", "") for one in ("other", "mine"))
        remote = ["    _remote_host {", f"        address\t\t\tipv4 {other};", "    }"]
        lines += [*remote, "    _this_host {", f"        address\t\t\tipv4 {mine};"]
    else:
        lines.append("    _this_host {")
    if device["device"]:
        lines += ["        volume 0 {", f"            device\t\t\tminor {minor};"]
        if device["data"]:
            path = device["data"].partition(" ")[2]
            lines.append(f'            disk\t\t\t"/dev/{path}";')
        lines.append("        }")
    return "\n".join([*lines, "    }", "}", ""])
