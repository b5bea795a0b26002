"""The node's messages as values, each member checked. A message that doesn't fit is Broken; unknown members are ignored."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .channel import Broken, Message

_REQUIRED = object()
_RANGES = (('temperature', 0.0, 100.0), ('top_p', 1e-6, 1.0), ('min_p', 0.0, 1.0), ('repetition_penalty', 1e-3, 100.0))


@dataclass(frozen=True)
class LoadOptions:
    """What the node wants of a load; None leaves the choice to the engine."""
    device: str | None = None
    dtype: str | None = None
    threads: int | None = None
    context: int | None = None


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen; None is the model's own default."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None

    def refused_because(self) -> str | None:
        """What no engine can do with these values, if anything."""
        for name, least, most in _RANGES:
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                return f'{name} is {value}; it must be from {least:g} to {most:g}'
        return None


@dataclass(frozen=True)
class Prompt:
    """Either a ready text or a chat that the model's template renders."""
    text: str | None = None
    messages: list[Message] | None = None
    tools: list[Message] = field(default_factory=list)
    variables: Message = field(default_factory=dict)


@dataclass(frozen=True)
class Load:
    id: int
    folder: str
    options: LoadOptions


@dataclass(frozen=True)
class Unload:
    id: int


@dataclass(frozen=True)
class Generate:
    id: int
    prompt: Prompt
    sampling: Sampling
    max_tokens: int | None


@dataclass(frozen=True)
class Count:
    id: int
    prompt: Prompt


@dataclass(frozen=True)
class Cancel:
    id: int


@dataclass(frozen=True)
class Ping:
    id: int


@dataclass(frozen=True)
class Stop:
    pass


class _Members:
    """Takes members out of an object; null is as if absent."""

    def __init__(self, what: str, value: Message) -> None:
        self._what = what
        self._value = value

    def take(self, name: str, kind: type, default: Any = _REQUIRED) -> Any:
        value: Any = self._value.get(name)
        if value is None:
            if default is _REQUIRED:
                raise Broken(f'{self._what} lacks {name}')
            return default
        if kind is float and type(value) is int:
            value = float(value)
        # A truth value is an int to Python, but not here.
        if type(value) is not kind:
            raise Broken(f'{name} of {self._what} has the wrong type')
        if isinstance(value, float) and not math.isfinite(value):
            raise Broken(f'{name} of {self._what} is no finite number')
        return value

    def count(self, name: str, default: Any = _REQUIRED) -> Any:
        value = self.take(name, int, default)
        if value is not default and value < 0:
            raise Broken(f'{name} of {self._what} is negative')
        return value

    def objects(self, name: str) -> list[Message]:
        value: list[Any] = self.take(name, list, [])
        if not all(isinstance(each, dict) for each in value):
            raise Broken(f'{name} of {self._what} holds something that is no object')
        return value


def _load(members: _Members) -> Load:
    options = _Members('options', members.take('options', dict, {}))
    return Load(members.count('id'), members.take('folder', str),
                LoadOptions(options.take('device', str, None), options.take('dtype', str, None),
                            options.count('threads', None), options.count('context', None)))


def _prompt(members: _Members) -> Prompt:
    text = members.take('prompt', str, None)
    messages = members.take('messages', list, None)
    if (text is None) == (messages is None):
        raise Broken('a prompt is either a text or messages')
    if text is not None:
        return Prompt(text=text)
    return Prompt(messages=members.objects('messages'), tools=members.objects('tools'),
                  variables=members.take('template', dict, {}))


def _sampling(members: _Members) -> Sampling:
    return Sampling(members.take('temperature', float, None), members.take('top_p', float, None),
                    members.count('top_k', None), members.take('min_p', float, None),
                    members.take('repetition_penalty', float, None), members.take('seed', int, None))


def _generate(members: _Members) -> Generate:
    return Generate(members.count('id'), _prompt(members), _sampling(_Members('sampling', members.take('sampling', dict, {}))),
                    members.count('max_tokens', None))


FromNode = Load | Unload | Generate | Count | Cancel | Ping | Stop

_READERS: dict[str, Callable[[_Members], FromNode]] = {
    'load': _load,
    'unload': lambda members: Unload(members.count('id')),
    'generate': _generate,
    'count': lambda members: Count(members.count('id'), _prompt(members)),
    'cancel': lambda members: Cancel(members.count('id')),
    'ping': lambda members: Ping(members.count('id')),
    'stop': lambda _: Stop(),
}


def read(message: Message) -> FromNode:
    kind = message.get('type')
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise Broken('a message has no type' if kind is None else f'a message has the unknown type {str(kind)[:40]!r}')
    return reader(_Members(str(kind), message))
