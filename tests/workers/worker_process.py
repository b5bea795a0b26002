"""A worker as a test drives it: the node's side of the protocol, in Python."""
from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]


class WorkerProcess:
    """Starts a worker and speaks with it. Waits have a watchdog, which fails the test."""

    def __init__(self, *command: str, environment: dict[str, str] | None = None, log: Any = subprocess.PIPE,
                 watchdog_seconds: float = 60) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.settimeout(watchdog_seconds)
        self.socket = ours
        self._next_id = 0
        self._watchdog = watchdog_seconds
        with its:
            self.process = subprocess.Popen(
                command, env=os.environ | {'WERK_WORKER_FD': str(its.fileno())} | (environment or {}), pass_fds=(its.fileno(),),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def send(self, kind: str, **members: Any) -> int:
        """Sends a message with an id of its own, unless one is given; tells the id."""
        if 'id' not in members and kind != 'stop':
            self._next_id += 1
            members['id'] = self._next_id
        self.send_text(json.dumps({'type': kind, **members}).encode())
        return members.get('id', 0)

    def send_text(self, text: bytes) -> None:
        self.socket.sendall(struct.pack('>I', len(text)) + text)

    def receive(self) -> Message | None:
        """The next message; None once the worker has closed the channel."""
        head = self._read(4)
        return None if head is None else json.loads(self._read(struct.unpack('>I', head)[0]) or b'')

    def _read(self, size: int) -> bytes | None:
        data = b''
        while len(data) < size:
            try:
                piece = self.socket.recv(size - len(data))
            except ConnectionResetError:
                piece = b''
            if not piece:
                return None
            data += piece
        return data

    def expect(self, kind: str, id: int | None = None) -> Message:
        """The next message, which must be of that kind and for that request; progress is passed over."""
        message = self.receive()
        while message is not None and message['type'] == 'progress' != kind:
            message = self.receive()
        if message is None or message['type'] != kind or (id is not None and message['id'] != id):
            raise AssertionError(f'{kind} was due, {message} came')
        return message

    def load(self, folder: str, **options: Any) -> Message:
        return self.expect('loaded', self.send('load', folder=folder, options=options))

    def generate(self, prompt: str | list[Message], **members: Any) -> int:
        kind = {'prompt': prompt} if isinstance(prompt, str) else {'messages': prompt}
        return self.send('generate', **kind, **{'sampling': {}, **members})

    def tokens(self, id: int) -> Iterator[Message]:
        """The tokens of a generation as they come, then the message that ends it."""
        while True:
            message = self.receive()
            if message is None:
                raise AssertionError('the worker left in the middle of a generation')
            if message.get('id') != id or message['type'] in ('started', 'pong', 'counted'):
                continue
            yield message
            if message['type'] != 'token':
                return

    def answer(self, prompt: str | list[Message], **members: Any) -> tuple[str, Message]:
        """A whole answer: its text and its end."""
        *tokens, end = self.tokens(self.generate(prompt, **members))
        return ''.join(token['text'] for token in tokens), end

    def ended(self) -> tuple[int, str]:
        """Waits for the process to end; its status and what it printed."""
        output, _ = self.process.communicate(timeout=self._watchdog)
        return self.process.returncode, (output or b'').decode()
