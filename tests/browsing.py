# SPDX-License-Identifier: BSD-2-Clause
"""Somebody with a browser that keeps cookies, fills in forms, and runs no script."""

import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import urlencode

from rapi_door import RapiDoor

COOKIE = "__Host-moorage"


class Seen(NamedTuple):
    """A page, as it came."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def words(self) -> str:
        """What is read on it: no markup, and a space for each gap."""
        text = self.text.replace("<wbr>", "")
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())

    @property
    def hidden(self) -> dict[str, str]:
        """The hidden fields of its forms."""
        pattern = r'<input type="hidden" name="(\w+)" value="([^"]*)">'
        return {name: unescape(value) for name, value in re.findall(pattern, self.text)}


class Browser:
    """A browser at a door."""

    def __init__(self, door: RapiDoor) -> None:
        self.door = door
        self.cookie = ""

    async def send(self, method: str, path: str, **more: Any) -> Seen:
        """Send a request, and follow no redirect."""
        headers = dict(more.pop("headers", {}))
        if self.cookie:
            headers["Cookie"] = f"{COOKIE}={self.cookie}"
        answer = await self.door.ask(
            method, path, user="", headers=headers, allow_redirects=False, **more
        )
        found = re.match(rf"{COOKIE}=([^;]*)", answer.headers.get("Set-Cookie", ""))
        if found:
            self.cookie = found[1].strip('"')
        return Seen(answer.status, answer.body, answer.headers)

    async def open(self, path: str) -> Seen:
        """Open an address, wherever it leads."""
        seen = await self.send("GET", path)
        while seen.status == 303:
            seen = await self.send("GET", seen.headers["Location"])
        return seen

    async def post(
        self, path: str, fields: Mapping[str, str | Sequence[str]], **more: Any
    ) -> Seen:
        """Send a form as it is."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        headers |= more.pop("headers", {})
        data = urlencode(fields, doseq=True)
        return await self.send("POST", path, data=data, headers=headers, **more)

    async def fill(self, page: Seen, path: str, **fields: str | Sequence[str]) -> Seen:
        """Send the form of a page, filled in, and look where that leads."""
        seen = await self.post(path, {**page.hidden, **fields})
        return await self.open(seen.headers["Location"]) if seen.status == 303 else seen

    async def sign_in(self, name: str = "root", word: str = "secret") -> Seen:
        """Sign in; return where that leads."""
        page = await self.open("/ui/sign-in")
        return await self.fill(page, "/ui/sign-in", name=name, password=word)
