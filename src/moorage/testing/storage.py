# SPDX-License-Identifier: BSD-2-Clause
"""The storage that simulated nodes share: volumes, files, and who has them attached.

It answers the commands that templates yield, as the programs and providers would.
"""

from fcntl import LOCK_EX, flock
from pathlib import Path, PurePosixPath

from moorage.errors import CommandFailed
from moorage.storage import Command, Output

from .stored import PROVIDERS_DIR, Files, Stored
from .tools import TOOLS


class San(Stored):
    """The storage, with the programs and providers that work on it."""

    @classmethod
    def in_directory(cls, directory: Path) -> "San":
        """Return storage that several processes share."""
        shared = ("volumes", "files", "attached", "guests", "devices")
        names = (*shared, "logical", "groups", "mounts", "mirrors", "ended")
        made = cls(*(Files(directory / name) for name in names))
        made.turn = directory / ".turn"
        return made

    def lose_power(self, node: str) -> None:
        """Forget what a node had in memory: its guests and its attachments."""
        lost = (self.guests, self.attached, self.mounts, self.mirrors, self.ended)
        for records in lost:
            for key in [key for key in records if key.startswith(f"{node} ")]:
                del records[key]

    def power_off(self, node: str, guest: str) -> None:
        """Let a guest power itself off."""
        del self.guests[f"{node} {guest}"]
        self.ended[f"{node} {guest}"] = {}

    def answer(self, node: str, command: Command) -> Output:
        """Return what a command prints on `node`.

        Raises
        ------
        CommandFailed
            If it fails and the template does not look at its exit status.
        """
        if self.turn is None:
            return self._answer(node, command)
        with self.turn.open("a") as turn:
            flock(turn, LOCK_EX)
            return self._answer(node, command)

    def _answer(self, node: str, command: Command) -> Output:
        program = PurePosixPath(command.argv[0])
        if program.is_relative_to(PROVIDERS_DIR):
            output = self._script(node, program, dict(command.env))
        elif program.name in ("drbdsetup", "drbdmeta"):
            output = self.drbd.answer(node, command)
        elif command.argv == ("cat", "/proc/drbd"):
            output = Output(self.drbd.status(node))
        else:
            run = TOOLS.get(program.name, _not_found)
            output = run(self, node, _operands(command), command)
        if output.code and command.check:
            title = command.title
            raise CommandFailed(
                f"{title} failed (exited with exit code {output.code}), last lines of "
                f"output:\n{output.stdout}"
            )
        return output

    def _script(self, node: str, script: PurePosixPath, env: dict[str, str]) -> Output:
        provider = script.parent.name
        asking = {
            "list": lambda: self._listed(provider),
            "capacity": lambda: self._room(provider, env),
            "verify": lambda: self._verified(env),
        }
        if script.name in asking:
            return asking[script.name]()
        by_name = provider.startswith("named")
        volume = env["VOL_CNAME"] if by_name else env["VOL_NAME"]
        if script.name == "create":
            return self._created(provider, volume, env)
        if script.name in ("remove", "detach", "close"):
            return self._let_go(script.name, node, volume)
        if volume not in self.volumes:
            return Output(f"there is no volume {volume}", 1)
        return self._use(script.name, node, volume, env)

    def _created(self, provider: str, volume: str, env: dict[str, str]) -> Output:
        """Make a volume; where disks' names are volumes', only what is not there."""
        reuses, there = env.get("EXTP_REUSE_DATA") == "True", volume in self.volumes
        if reuses:
            return Output() if there else Output(f"there is no volume {volume}", 1)
        if there and provider.startswith("named"):
            return Output(f"volume {volume} is there already", 1)
        new = {"size": int(env["VOL_SIZE"]), "provider": provider, "data": ""}
        self.volumes.setdefault(volume, new)
        return Output()

    def _room(self, provider: str, env: dict[str, str]) -> Output:
        """Return what was set for a tier, or for the whole provider."""
        place = f"{provider}/{env.get('EXTP_TIER', '')}"
        told = self.capacity.get(place) or self.capacity.get(provider)
        return Output(told or "nobody knows\n")

    def _listed(self, provider: str) -> Output:
        lines = [
            f"{name} {volume['size']} {volume.get('note', '')}\n"
            for name, volume in self.volumes.items()
            if volume.get("provider") == provider
        ]
        return Output("".join(lines))

    def _verified(self, env: dict[str, str]) -> Output:
        """Take any tier but one."""
        bad = env.get("EXTP_TIER") == "paper"
        return Output("there is no tier 'paper'", 1) if bad else Output()

    def _let_go(self, action: str, node: str, volume: str) -> Output:
        if action == "remove":
            self.volumes.pop(volume, None)
        if action in ("remove", "detach"):
            self.attached.pop(f"{node} {volume}", None)
        elif f"{node} {volume}" in self.attached:
            self.attached[f"{node} {volume}"] = {"open": None}
        return Output()

    def _use(self, action: str, node: str, volume: str, env: dict[str, str]) -> Output:
        found = self.volumes[volume]
        key = f"{node} {volume}"
        if action == "attach":
            self.attached.setdefault(key, {"open": None})
            device = "" if env["EXTP_PROVIDER"].startswith("user") else f"/dev/{volume}"
            return Output(f"{device}\nkvm:nbd:unix:/sim/{volume}\n")
        if action == "open":
            return self._open(key, volume, alone=env["VOL_OPEN_EXCLUSIVE"] == "True")
        if action == "grow" and env["EXTP_PROVIDER"] not in self.stunted:
            self.volumes[volume] = found | {"size": int(env["VOL_NEW_SIZE"])}
        elif action == "setinfo":
            self.volumes[volume] = found | {"note": env["VOL_METADATA"]}
        elif action == "snapshot":
            size = int(env["VOL_SNAPSHOT_SIZE"])
            self.volumes.setdefault(env["VOL_SNAPSHOT_NAME"], found | {"size": size})
        return Output()

    def _open(self, key: str, volume: str, *, alone: bool) -> Output:
        """Open a volume, as storage with locks does: who is alone stays alone."""
        others = [
            found["open"]
            for other, found in self.attached.items()
            if other.endswith(f" {volume}") and other != key
        ]
        if any(others) or (alone and False in others):
            return Output(f"volume {volume} is open elsewhere", 1)
        self.attached[key] = {"open": alone}
        return Output()


def _not_found(
    _stored: Stored, _node: str, _operands: list[str], command: Command
) -> Output:
    """Answer as a shell does that knows no such program."""
    return Output(f"{command.argv[0]}: command not found", 127)


def _operands(command: Command) -> list[str]:
    return [part for part in command.argv[1:] if not part.startswith("-")]
