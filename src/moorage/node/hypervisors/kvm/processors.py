# SPDX-License-Identifier: BSD-2-Clause
"""Which models of processors guests can have here: a QEMU without a guest says so.

It is asked once for each question: what it answers changes with the machine, its
kernel and QEMU alone, and with the accelerator.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, TypeVar

from msgspec import DecodeError, Meta, Struct, ValidationError, convert, json

from moorage.errors import Failed
from moorage.model.hvparams import parameters
from moorage.model.processors import WHATEVER, Processor, ProcessorModels, model_of

from . import trial
from .accelerator import KVM, Accelerators

T = TypeVar("T")
_PATIENCE = 30.0
_KEPT = 64
"""Answers: a cluster has a few kinds of guests."""
_PLACE = "/machine/unattached/device[0]"
"""Where QEMU keeps the first processor of a machine."""
_Features = Annotated[list[str], Meta(max_length=2000)]


class _Model(Struct, frozen=True, rename="kebab"):
    """One model of QEMU's."""

    name: str
    alias_of: str = ""
    migration_safe: bool = False
    unavailable_features: _Features = []


class _Properties(Struct, frozen=True):
    props: dict[str, Any]


class _Expanded(Struct, frozen=True):
    model: _Properties


class Processors:
    """What guests' processors can be on a node.

    Parameters
    ----------
    program
        The QEMU that guests get.
    accelerators
        What is known of the accelerator that they get.
    """

    def __init__(self, program: str, accelerators: Accelerators) -> None:
        self._program = program
        self._accelerators = accelerators
        self._processors: dict[tuple[str, str, str], Processor] = {}
        self._models: dict[tuple[str, str], ProcessorModels] = {}

    async def processor(self, given: Mapping[str, Any]) -> Processor:
        """Return what the processors of a guest with some parameters would be.

        Raises
        ------
        BadInput
            If a parameter cannot be honoured.
        Failed
            If QEMU cannot be asked.
        """
        read = parameters(given)
        accel = await self._accelerator(read.accelerator)
        cpu = read.cpu_type or _usual(accel)
        key = (self._accelerators.machine(), accel, cpu)
        if key not in self._processors:
            found = await self._tried(accel, cpu)
            if len(self._processors) >= _KEPT:
                self._processors.clear()
            self._processors[key] = found
        return self._processors[key]

    async def models(self) -> ProcessorModels:
        """Return the models that guests can have here.

        Raises
        ------
        Failed
            If QEMU cannot be asked.
        """
        accel = await self._accelerator("auto")
        key = (self._accelerators.machine(), accel)
        if key not in self._models:
            words = ("-machine", "none")
            answer = await self._ask(accel, words, {"execute": "query-cpu-definitions"})
            told = _read(list[_Model], answer)
            # base is what others are made of, and has nothing itself
            hidden = {"base", *(one.alias_of for one in told)}
            lacking = {
                one.name: tuple(one.unavailable_features)
                for one in told
                if one.migration_safe and one.name not in hidden
            }
            self._models = {key: ProcessorModels(accelerator=accel, lacking=lacking)}
        return self._models[key]

    async def _accelerator(self, wanted: str) -> str:
        if wanted == "auto":
            return (await self._accelerators.verdict()).name
        return wanted

    async def _tried(self, accel: str, cpu: str) -> Processor:
        words = ("-machine", "pc", "-m", "16", "-cpu", cpu)
        asked = {"path": _PLACE, "property": "unavailable-features"}
        try:
            answer = await self._ask(
                accel, words, {"execute": "qom-get", "arguments": asked}
            )
        except Failed as error:
            return Processor(accelerator=accel, problem=error.message)
        lacking = tuple(sorted(_read(_Features, answer)))
        whatever = model_of(cpu) in WHATEVER
        known = await self._features(accel, model_of(cpu)) if whatever else {}
        return Processor(
            accelerator=accel,
            lacking=lacking,
            features=tuple(sorted(name for name, has in known.items() if has)),
            without=tuple(sorted(name for name, has in known.items() if not has)),
        )

    async def _features(self, accel: str, model: str) -> dict[str, bool]:
        """Return which features a model has that is what there is."""
        asked = {"type": "full", "model": {"name": model}}
        ask = {"execute": "query-cpu-model-expansion", "arguments": asked}
        answer = await self._ask(accel, ("-machine", "none"), ask)
        found = _read(_Expanded, answer).model.props
        return {name: has for name, has in found.items() if isinstance(has, bool)}

    async def _ask(
        self, accel: str, words: tuple[str, ...], command: Mapping[str, Any]
    ) -> object:
        """Return what a QEMU without a guest answers; raise `Failed` with its words."""
        argv = (
            *(self._program, "-accel", accel, *words, "-S", "-nodefaults"),
            *("-no-user-config", "-display", "none", "-qmp", "stdio"),
        )
        talk = ({"execute": "qmp_capabilities"}, {**command, "id": 1})
        lines = [json.encode(one) for one in (*talk, {"execute": "quit"})]
        try:
            child = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise Failed(f"{self._program}: {error.strerror}") from None
        try:
            async with asyncio.timeout(_PATIENCE):
                said, errors = await child.communicate(b"\n".join(lines))
        except TimeoutError:
            raise Failed(f"QEMU gave no answer in {_PATIENCE:.0f} s") from None
        finally:
            if child.returncode is None:
                with suppress(ProcessLookupError):
                    child.kill()
                await child.wait()
        for line in said.splitlines():
            with suppress(DecodeError):
                match json.decode(line):
                    case {"id": 1, "return": answer}:
                        return answer
                    case {"id": 1, "error": {"desc": str(desc)}}:
                        raise Failed(desc)
        raise Failed(trial.last_words(errors.decode(errors="replace")) or "QEMU ended")


def _usual(accel: str) -> str:
    """Return the processor of a guest without a ``cpu_type``."""
    return "host" if accel == KVM else "max"


def _read(kind: type[T], answer: object) -> T:
    try:
        return convert(answer, kind)
    except ValidationError:
        raise Failed("QEMU does not answer as QEMU does") from None
