"""The loop that answers the node: one engine, one generation at a time, one thread.

Between two tokens the inbox is read without waiting, so that `cancel`, `ping` and `count` are answered while a generation runs.
"""
from __future__ import annotations

import base64
import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from . import messages
from .channel import Broken, Channel, Gone
from .failures import Failure, failure_of
from .messages import LoadOptions, Prompt, Sampling

PROTOCOL = 1
STATUS_BROKEN = 3
STATUS_ENGINE_MISSING = 4
# For a model that doesn't tell its context.
TOKENS_MAX = 1 << 20

Progress = Callable[[str, float | None], None]


class EngineMissing(Exception):
    """The engine's packages aren't there; the text says what to do."""


class Cancelled(BaseException):
    """The node wants the running generation ended."""


@dataclass(frozen=True)
class Loaded:
    """What a load gives: the context in tokens (0: unknown), and what the model's template can do."""
    context: int
    template: dict[str, bool]


class Engine(Protocol):
    """What a worker program brings. Any exception may come out of each call; a Failure says its code itself."""
    name: str
    version: str
    can: Sequence[str]

    def load(self, folder: str, options: LoadOptions, progress: Progress) -> Loaded:
        """Brings a model into memory. What a failed load left is cleared by `unload`."""

    def unload(self) -> None:
        """Gives all memory of the model back; there may be none."""

    def encode(self, prompt: Prompt) -> Sequence[int]:
        """The prompt's tokens, by the model's own template and tokenizer."""

    def generate(self, prompt: Sequence[int], sampling: Sampling, limit: int, turn: Turn) -> bool:
        """Tells `turn` each token, at most `limit`. True: the model ended by itself; False: the limit did."""


class Turn:
    """A running generation, as its engine sees it. Both calls may raise what ends it."""

    def __init__(self, worker: Worker, id: int) -> None:
        self._worker = worker
        self.id = id
        self.tokens = 0

    def token(self, text: str | bytes, tokens: int = 1) -> None:
        """The next piece of the answer; a text of whole characters, or bytes."""
        self.tokens += tokens
        content = {'text': text} if isinstance(text, str) else {'bytes': base64.b64encode(text).decode('ascii')}
        self._worker.send('token', self.id, **content, tokens=tokens)
        self.poll()

    def poll(self) -> None:
        """Answers the node where a step of the engine ends without a token."""
        self._worker.answer_waiting()


class Worker:
    def __init__(self, channel: Channel, engine: Engine) -> None:
        self._channel = channel
        self._engine = engine
        self._loaded: Loaded | None = None
        self._folder = ''
        self._busy = ''  # what is being done, for the message about what came out of turn
        self._generation: int | None = None

    def serve(self) -> NoReturn:
        """Answers until the node says stop (SystemExit), leaves (Gone) or errs (Broken)."""
        self._channel.send({'type': 'hello', 'protocol': PROTOCOL, 'engine': self._engine.name,
                            'engine_version': self._engine.version, 'can': list(self._engine.can)})
        while True:
            message = messages.read(self._channel.receive())
            if not self._answer(message):
                self._begin(message)

    def send(self, kind: str, id: int, **members: object) -> None:
        self._channel.send({'type': kind, 'id': id, **members})

    def answer_waiting(self) -> None:
        while (raw := self._channel.poll()) is not None:
            message = messages.read(raw)
            if not self._answer(message):
                raise Broken(f'{raw["type"]} came while a {self._busy} runs')

    def _answer(self, message: messages.FromNode) -> bool:
        """Answers what may come at any time; False for the rest."""
        match message:
            case messages.Cancel(id):
                if id == self._generation:
                    raise Cancelled
            case messages.Ping(id):
                self.send('pong', id)
            case messages.Count(id, prompt):
                self._count(id, prompt)
            case messages.Stop():
                raise SystemExit(0)
            case _:
                return False
        return True

    def _begin(self, message: messages.FromNode) -> None:
        match message:
            case messages.Load():
                if self._loaded is not None:
                    raise Broken('load came while a model is loaded')
                self._load(message)
            case messages.Unload(id):
                self._unload()
                self.send('unloaded', id)
            case messages.Generate():
                if self._loaded is None:
                    raise Broken('generate came without a model')
                self._generate(message, self._loaded)

    def _load(self, message: messages.Load) -> None:
        def progress(what: str, fraction: float | None = None) -> None:
            self.send('progress', message.id, what=what, fraction=fraction)
            self.answer_waiting()

        self._folder, self._busy = message.folder, 'load'
        try:
            loaded = self._engine.load(message.folder, message.options, progress)
        except Exception as error:
            self._unload()
            # Libraries say in every way that a file is damaged.
            self._fail(message.id, error, 'model_unusable')
        else:
            self._loaded = loaded
            self.send('loaded', message.id, context=loaded.context, template=loaded.template)
        finally:
            self._busy = ''

    def _unload(self) -> None:
        self._loaded = None
        self._engine.unload()

    def _count(self, id: int, prompt: Prompt) -> None:
        if self._loaded is None:
            raise Broken('count came without a model')
        try:
            tokens = len(self._engine.encode(prompt))
        except Exception as error:
            self._fail(id, error, 'internal')
        else:
            self.send('counted', id, tokens=tokens)

    def _generate(self, message: messages.Generate, loaded: Loaded) -> None:
        turn = Turn(self, message.id)
        prompt: Sequence[int] = ()
        self._busy, self._generation = 'generate', message.id
        try:
            refused = message.sampling.refused_because()
            if refused is not None:
                raise Failure('invalid_request', refused)
            prompt = self._engine.encode(message.prompt)
            room = _room(len(prompt), loaded.context)
            wanted = room if message.max_tokens is None else min(room, message.max_tokens)
            self.send('started', message.id, prompt_tokens=len(prompt), cached_tokens=0)
            ended = wanted > 0 and self._engine.generate(prompt, message.sampling, wanted, turn)
            reason = 'stop' if ended else 'length' if message.max_tokens == wanted else 'context'
        except Cancelled:
            reason = 'cancelled'
        except Exception as error:
            self._fail(message.id, error, 'internal')
            return
        finally:
            self._busy, self._generation = '', None
        self.send('finished', message.id, reason=reason, prompt_tokens=len(prompt), cached_tokens=0,
                  completion_tokens=turn.tokens)

    def _fail(self, id: int, error: Exception, otherwise: str) -> None:
        failure = failure_of(error, otherwise, self._folder)
        if not isinstance(error, Failure):
            traceback.print_exception(error)
        self.send('failed', id, code=failure.code, message=str(failure), **failure.numbers)


def _room(prompt_tokens: int, context: int) -> int:
    """How many tokens the answer may have."""
    if not prompt_tokens:
        raise Failure('invalid_request', 'the prompt is empty')
    if not context:
        return TOKENS_MAX
    if prompt_tokens >= context:
        raise Failure('context_length_exceeded', f'the prompt has {prompt_tokens} tokens, and the context holds {context} with '
                      'the answer', prompt_tokens=prompt_tokens, context=context)
    return context - prompt_tokens


def run(make_engine: Callable[[Channel], Engine], channel_class: type[Channel] = Channel) -> NoReturn:
    """A worker program's main: never returns. Call it before the engine's libraries are imported."""
    os.dup2(2, 1)  # libraries print
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the node, which then says stop
    channel = channel_class.inherited()
    status = 1
    try:
        Worker(channel, make_engine(channel)).serve()
    except SystemExit:
        status = 0
    except Gone:
        status = 0
    except Broken as broken:
        status = STATUS_BROKEN
        _fault(channel, str(broken))
    except EngineMissing as missing:
        status = STATUS_ENGINE_MISSING
        _fault(channel, str(missing))
    except BaseException:
        traceback.print_exc()
    # At once, without the goodbyes of the engines' libraries.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _fault(channel: Channel, message: str) -> None:
    print(f'werk worker: {message}', file=sys.stderr)
    with contextlib.suppress(Gone):
        channel.send({'type': 'fault', 'message': message})
