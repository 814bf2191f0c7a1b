# SPDX-License-Identifier: BSD-2-Clause
"""Routes: a view says by its signature what it takes and what it answers.

A view takes the call, the names in its path, and if it wants them ``body`` and
``query``, each of a declared struct. What it returns is a declared struct, or None for
no body.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar, get_type_hints

from microversion_parse import Version
from msgspec import Struct

from moorage_cloud.errors import NotFound

from .errors import NoSuchMethod
from .versions import version

Lists = dict[str, list[str]]
Shape = type[Struct] | type[dict[str, str]]
"""What a body is declared by: a dictionary where its keys are not known before."""
Answer = Struct | dict[str, str] | Lists | None
View = TypeVar("View", bound=Callable[..., Answer])


class Endpoint(Struct, frozen=True, kw_only=True):
    """A view at its place.

    Attributes
    ----------
    path
        With names in braces.
    rule
        What who asks must be allowed; empty for nothing.
    action
        The only key of the body that it is told by; empty for a view that has its
        path and method for itself.
    answer
        What it returns; None for no body.
    open
        Whether it asks for no token.
    low, high
        The versions that have it.
    """

    method: str
    path: str
    view: Callable[..., Answer]
    status: int
    rule: str
    action: str
    body: Shape | None
    query: type[Struct] | None
    answer: Shape | type[Lists] | None
    open: bool
    low: Version | None
    high: Version | None

    @property
    def summary(self) -> str:
        """What it does, in a line."""
        return (self.view.__doc__ or "").partition("\n")[0]

    def there(self, at: Version) -> bool:
        """Whether a version has it."""
        return (self.low is None or self.low <= at) and (
            self.high is None or at <= self.high
        )


class Routes:
    """The routes of a service, in the order in which they are declared."""

    def __init__(self) -> None:
        self.endpoints: list[Endpoint] = []
        self._at: dict[str, list[Endpoint]] = {}
        self._by_length: dict[int, list[tuple[str, ...]]] = {}

    def __call__(  # noqa: PLR0913 - what an endpoint is said by
        self,
        method: str,
        path: str,
        *,
        rule: str = "",
        status: int = 200,
        action: str = "",
        open_to_all: bool = False,
        low: str = "",
        high: str = "",
    ) -> Callable[[View], View]:
        """Declare the view that follows; see :class:`Endpoint`."""

        def declared(view: View) -> View:
            hints = get_type_hints(view)
            endpoint = Endpoint(
                method=method,
                path=path,
                view=view,
                status=status,
                rule=rule,
                action=action,
                body=hints.get("body"),
                query=hints.get("query"),
                answer=None if hints["return"] is type(None) else hints["return"],
                open=open_to_all,
                low=version(low) if low else None,
                high=version(high) if high else None,
            )
            self._add(endpoint)
            return view

        return declared

    def include(self, others: "Routes") -> None:
        """Have the routes of another one as well."""
        for endpoint in others.endpoints:
            self._add(endpoint)

    def _add(self, endpoint: Endpoint) -> None:
        self.endpoints.append(endpoint)
        self._at.setdefault(endpoint.path, []).append(endpoint)
        parts = tuple(endpoint.path.strip("/").split("/"))
        known = self._by_length.setdefault(len(parts), [])
        if parts not in known:
            known.append(parts)
            # Words before names: `volumes/detail` is no volume.
            known.sort(key=lambda them: [one.startswith("{") for one in them])

    def match(
        self, path: str, method: str, at: Version
    ) -> tuple[list[Endpoint], dict[str, str]]:
        """Return who answers (all that share it by actions), and the path's names.

        Raises
        ------
        NotFound
            If that version has nothing there.
        NoSuchMethod
            If it has, for other methods.
        """
        somebody = False
        for known, names in self._find(path):
            here = [one for one in self._at.get(known, ()) if one.there(at)]
            found = [one for one in here if one.method == method]
            if found:
                return found, names
            somebody |= bool(here)
        if somebody:
            raise NoSuchMethod(f"The method {method} is not allowed for this resource.")
        raise NotFound("The resource could not be found.")

    def _find(self, path: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the declared paths that a path can be, and the names in it."""
        parts = path.split("/")
        for known in self._by_length.get(len(parts), ()):
            found = {}
            for mine, its in zip(known, parts, strict=True):
                if mine.startswith("{") and its:
                    found[mine[1:-1]] = its
                elif mine != its:
                    break
            else:
                yield "/" + "/".join(known), found
