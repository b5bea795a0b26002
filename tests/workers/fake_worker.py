#!/usr/bin/env python3
"""A worker whose model is a script: deterministic tokens, and every failure a test asks for. README.md beside it has the knobs.

It shares the workers' own channel and loop, so the protocol it speaks is theirs.
"""
from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import struct
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'workers'))

import werk_worker as worker  # noqa: E402
from werk_worker.worker import Cancelled  # noqa: E402

WORDS = ('river', 'stone', 'lamp', 'cloud', 'paper', 'tree', 'glass', 'bread', 'wheel', 'snow', 'salt', 'wind', 'boat', 'clock',
         'leaf', 'moon')
# In a prompt, [name] or [name=value] sets a member of the reply.
KNOB = re.compile(r'\[(\w+)(?:=([^\]\s]+))?\]')


class Control:
    """The test's side: a socket with lines of JSON, as the fake llama-server has it; silent where there is none."""

    def __init__(self, path: str) -> None:
        self._socket: socket.socket | None = None
        self._pending = b''
        self.released: set[int] = set()
        self.finished: set[int] = set()
        self.steps: dict[int, int] = {}
        self.is_ready = False
        if path:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.connect(path)

    def tell(self, event: str, **members: Any) -> None:
        if self._socket is not None:
            line = {'event': event, **members, 'at_us': time.monotonic_ns() // 1000}
            self._socket.sendall(json.dumps(line).encode() + b'\n')

    def wait(self, channel: worker.Channel | None) -> bool:
        """Waits for the node or a command, and carries commands out. True: the node said something."""
        sources: list[Any] = [each for each in (channel, self._socket) if each is not None]
        readable = select.select(sources, [], [])[0]
        if self._socket in readable:
            self._read(channel)
        return channel in readable

    def _read(self, channel: worker.Channel | None) -> None:
        assert self._socket is not None
        data = self._socket.recv(65536)
        if not data:  # the test is over; what it held is held no longer by anyone
            os._exit(0)
        *lines, self._pending = (self._pending + data).split(b'\n')
        for line in lines:
            self._obey(json.loads(line), channel)

    def _obey(self, command: dict[str, Any], channel: worker.Channel | None) -> None:
        request = command.get('request', 0)
        match command['do']:
            case 'ready':
                self.is_ready = True
            case 'release':
                self.released.add(request)
            case 'finish':
                self.finished.add(request)
                self.released.add(request)
            case 'step':
                self.steps[request] = self.steps.get(request, 0) + command.get('count', 1)
            case 'exit':
                print(command.get('stderr', ''), file=sys.stderr, flush=True)
                os._exit(command.get('code', 1))
            case 'kill_self':
                os.kill(os.getpid(), command.get('signal', signal.SIGKILL))
            case 'print':
                print(command['text'], flush=True)
            case 'send' if channel is not None:
                misbehave(channel, command['what'], request)


class ControlledChannel(worker.Channel):
    """The channel to the node, on which waiting also obeys the test."""
    control: Control

    def receive(self) -> dict[str, Any]:
        while True:
            message = self.poll()
            if message is not None:
                return message
            self.control.wait(self)


def misbehave(channel: worker.Channel, what: str, id: int) -> None:
    """Sends what no worker may send."""
    known: dict[str, dict[str, Any]] = {
        'unknown_type': {'type': 'nonsense', 'id': id},
        'no_type': {'id': id},
        'lacks_member': {'type': 'token', 'id': id},
        'wrong_type': {'type': 'token', 'id': id, 'text': 7},
        'wrong_id': {'type': 'token', 'id': id + 1000, 'text': 'stray'},
        'out_of_turn': {'type': 'loaded', 'id': id, 'context': 1, 'template': {'tools': False, 'later_system': False}},
        'second_start': {'type': 'started', 'id': id, 'prompt_tokens': 1, 'cached_tokens': 0},
        'second_hello': {'type': 'hello', 'protocol': 1, 'engine': 'fake', 'engine_version': '1', 'can': []},
        'fault': {'type': 'fault', 'message': 'the node said something odd'},
    }
    raw = {
        'garbage': frame(b'this is no JSON'),
        'no_object': frame(b'[1,2]'),
        'no_utf8': frame(b'{"type":"token","text":"\xff"}'),
        'too_deep': frame(b'{"type":' + b'[' * 500 + b']' * 500 + b'}'),
        'empty': frame(b''),
        'oversized': struct.pack('>I', 2 << 20) + b' ' * 4096,
        'half': struct.pack('>I', 100) + b'{"type":',
    }
    if what in known:
        channel.send(known[what])
    else:
        channel.send_bytes(raw[what])
    if what == 'half':
        os._exit(1)


def frame(text: bytes) -> bytes:
    return struct.pack('>I', len(text)) + text


def die(how: str) -> None:
    print(f'the fake worker was told to {how}', file=sys.stderr, flush=True)
    if how == 'kill':
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(7)


class FakeEngine:
    name = 'fake'
    version = '1.0'
    can: Sequence[str] = ('tools', 'seed', 'cancel', 'count')

    def __init__(self, settings: dict[str, Any], control: Control, channel: ControlledChannel) -> None:
        self._settings = self._all_settings = settings
        self._control = control
        self._channel = channel
        self._generations = 0
        self._prompt = ''
        for name in ('name', 'version', 'can'):
            setattr(self, name, settings.get(name, getattr(self, name)))

    def load(self, folder: str, options: worker.LoadOptions, progress: Any) -> worker.Loaded:
        self._control.tell('loading', folder=folder, options=vars(options))
        self._settings = dict(self._all_settings)
        for part, members in self._all_settings.get('models', {}).items():
            if part in folder:
                self._settings.update(members)
        for step in range(self._settings.get('progress', 0)):
            progress(f'step {step + 1}', step / self._settings['progress'])
        how = self._settings.get('load', 'ready')
        self._control.is_ready = False
        while how == 'hold' and not self._control.is_ready:
            if self._control.wait(self._channel):
                progress('holding', None)
        if how in ('exit', 'kill'):
            die(how)
        if 'load_failed' in self._settings:
            raise failure(self._settings['load_failed'])
        if self._settings.get('needs_folder', False):
            worker.required_file(folder, 'model.json', 'it is the model')
        self._control.tell('loaded', folder=folder)
        return worker.Loaded(self._settings.get('context', 4096),
                             self._settings.get('template', {'tools': True, 'later_system': True}))

    def unload(self) -> None:
        self._control.tell('unloaded')

    def encode(self, prompt: worker.Prompt) -> list[int]:
        self._prompt = text_of(prompt)
        return [zlib.crc32(word.encode()) for word in self._prompt.split()]

    def generate(self, prompt: Sequence[int], sampling: worker.Sampling, limit: int, turn: worker.Turn) -> bool:
        reply, id = self._reply(), turn.id
        self._control.tell('generating', request=id, prompt_tokens=len(prompt), limit=limit, sampling=vars(sampling),
                           prompt=self._prompt)
        pieces = self._pieces(prompt, sampling, reply)
        try:
            for at, piece in enumerate(pieces[:limit]):
                self._before(at, reply, id, turn)
                if id in self._control.finished:
                    break
                self._say(piece, reply, turn)
            self._before(min(len(pieces), limit), reply, id, turn)
        except Cancelled:
            self._control.tell('cancelled', request=id, tokens=turn.tokens)
            raise
        self._control.tell('finishing', request=id, tokens=turn.tokens)
        return len(pieces) <= limit

    def _reply(self) -> dict[str, Any]:
        """The members for the next generation: the settings', on top the ones of its number, on top the prompt's own."""
        replies = self._settings.get('replies', [])
        own = replies[self._generations] if self._generations < len(replies) else {}
        self._generations += 1
        knobs = {name: json_or_text(value) for name, value in KNOB.findall(self._prompt)}
        return self._settings.get('reply', {}) | own | knobs

    def _pieces(self, prompt: Sequence[int], sampling: worker.Sampling, reply: dict[str, Any]) -> list[str | bytes]:
        """The answer's tokens: the same prompt and seed give the same ones."""
        if 'content' in reply:
            text = reply['content'] if isinstance(reply['content'], str) else ''.join(reply['content'])
        else:
            seed = 0 if sampling.temperature == 0 else sampling.seed or 0
            start = zlib.crc32(repr((prompt, seed)).encode())
            words = [WORDS[(start + index * (start % 7 + 1)) % len(WORDS)] for index in range(reply.get('tokens', 5))]
            text = ' '.join(words)
        if 'cut' in reply:
            data = text.encode()
            return [data[at:at + reply['cut']] for at in range(0, len(data), reply['cut'])]
        if isinstance(reply.get('content'), list):
            return reply['content']
        return re.findall(r'\s*\S+|\s+$', text)

    def _before(self, at: int, reply: dict[str, Any], id: int, turn: worker.Turn) -> None:
        """What the script wants before token number `at`, or before the end."""
        if 'noise' in reply:
            print('noise on the standard output', flush=True)
        if 'send' in reply and at == reply.get('send_after', 0):
            misbehave(self._channel, reply['send'], id)
        if 'die' in reply and at == reply.get('die_after', 0):
            die(reply['die'])
        if 'failed' in reply and at == reply.get('failed_after', 0):
            raise failure(reply['failed'])
        held = (at == 0 and 'hold' in reply) or at == reply.get('hold_after')
        while held and id not in self._control.released:
            self._wait(reply, turn)
        if held:
            self._control.released.discard(id)
        while 'gated' in reply and self._control.steps.get(id, 0) <= 0 and id not in self._control.finished:
            self._wait(reply, turn)
        if 'gated' in reply:
            self._control.steps[id] = self._control.steps.get(id, 0) - 1

    def _wait(self, reply: dict[str, Any], turn: worker.Turn) -> None:
        # One that is deaf is like an engine in the middle of a long step: it doesn't hear the node.
        if self._control.wait(None if 'deaf' in reply else self._channel):
            self._obeying(reply, turn, turn.poll)

    def _say(self, piece: str | bytes, reply: dict[str, Any], turn: worker.Turn) -> None:
        self._obeying(reply, turn, lambda: turn.token(piece))

    @staticmethod
    def _obeying(reply: dict[str, Any], turn: worker.Turn, call: Callable[[], None]) -> None:
        while True:
            try:
                return call()
            except Cancelled:
                if 'ignore_cancel' not in reply:
                    raise
                call = turn.poll  # what came behind the cancel is in the inbox already


def failure(members: Any) -> worker.Failure:
    if isinstance(members, str):
        members = {'code': members}
    numbers = {name: members[name] for name in ('prompt_tokens', 'context') if name in members}
    return worker.Failure(members['code'], members.get('message', 'the fake was told to fail'), **numbers)


def text_of(prompt: worker.Prompt) -> str:
    if prompt.text is not None:
        return prompt.text
    return '\n'.join(f'{message.get("role")}: {message.get("content")}' for message in prompt.messages or [])


def json_or_text(value: str) -> Any:
    try:
        return json.loads(value) if value else True
    except ValueError:
        return value


def main() -> None:
    settings: dict[str, Any] = {}
    script = os.environ.get('FAKE_ENGINE_SCRIPT', sys.argv[0] + '.json')
    if os.path.exists(script):
        with open(script, encoding='utf-8') as file:
            settings = json.load(file)
    control = Control(os.environ.get('FAKE_ENGINE_CONTROL', settings.get('control', '')))
    control.tell('spawned', pid=os.getpid(), argv=sys.argv, env={
        name: value for name, value in os.environ.items() if name.startswith(('WERK', 'HF_', 'TRANSFORMERS', 'OMP', 'PYTHON'))})
    how = settings.get('start', 'ready')
    while how == 'hold' and not control.is_ready:
        control.wait(None)
    if how in ('exit', 'kill'):
        die(how)
    def make_engine(channel: worker.Channel) -> FakeEngine:
        assert isinstance(channel, ControlledChannel)
        channel.control = control
        return FakeEngine(settings, control, channel)

    worker.run(make_engine, ControlledChannel)


if __name__ == '__main__':
    main()
