"""The private channel to the node: frames of JSON over a UNIX stream socket that the worker inherits.

A frame is the length of a text (four bytes, big-endian), then the text. Either side's mistake ends the worker, so nothing here
tries to go on after one.
"""
from __future__ import annotations

import json
import os
import socket
import struct
from typing import Any

INCOMING_BYTES_MAX = 256 << 20
OUTGOING_BYTES_MAX = 1 << 20
NESTING_MAX = 128
READ_BYTES = 1 << 18

Message = dict[str, Any]


# Both pass through the engines' libraries, which catch Exception here and there.
class Gone(BaseException):
    """The node has closed the channel."""


class Broken(BaseException):
    """The node has broken the protocol; the text says how."""


class Channel:
    def __init__(self, connection: socket.socket, incoming_bytes_max: int = INCOMING_BYTES_MAX) -> None:
        self._connection = connection
        self._incoming_bytes_max = incoming_bytes_max
        self._inbox = bytearray()

    @classmethod
    def inherited(cls) -> Channel:
        """The channel that WERK_WORKER_FD names; children of the worker don't get it."""
        connection = socket.socket(fileno=int(os.environ.pop('WERK_WORKER_FD')))
        connection.set_inheritable(False)
        connection.setblocking(True)
        return cls(connection)

    def send(self, message: Message) -> None:
        """Sends a message; waits while the node doesn't read."""
        text = json.dumps(message, ensure_ascii=False, separators=(',', ':')).encode('utf-8', 'replace')
        if len(text) > OUTGOING_BYTES_MAX:
            raise ValueError(f'a message of {len(text)} bytes is over the limit of {OUTGOING_BYTES_MAX}')
        self.send_bytes(struct.pack('>I', len(text)) + text)

    def send_bytes(self, data: bytes) -> None:
        try:
            self._connection.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Gone from error

    def receive(self) -> Message:
        """The next message; waits for it."""
        while True:
            message = self._take()
            if message is not None:
                return message
            self._fill(0)

    def poll(self) -> Message | None:
        """The next message if it is there already, without waiting."""
        message = self._take()
        while message is None and self._fill(socket.MSG_DONTWAIT):
            message = self._take()
        return message

    def fileno(self) -> int:
        return self._connection.fileno()

    def _fill(self, flags: int) -> bool:
        try:
            data = self._connection.recv(READ_BYTES, flags)
        except BlockingIOError:
            return False
        except ConnectionResetError as error:
            raise Gone from error
        if not data:
            raise Gone
        self._inbox += data
        return True

    def _take(self) -> Message | None:
        if len(self._inbox) < 4:
            return None
        (length,) = struct.unpack_from('>I', self._inbox)
        if length > self._incoming_bytes_max:
            raise Broken(f'a frame of {length} bytes is over the limit of {self._incoming_bytes_max}')
        if len(self._inbox) < 4 + length:
            return None
        text = bytes(self._inbox[4:4 + length])
        del self._inbox[:4 + length]
        return parse(text)


def parse(text: bytes) -> Message:
    """A frame's text as an object."""
    try:
        value = json.loads(text.decode('utf-8'), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Broken(f'a frame is no JSON: {error}') from error
    if not isinstance(value, dict):
        raise Broken('a frame is no JSON object')
    # As many brackets as that are needed to be too deep; most frames have fewer.
    if text.count(b'{') + text.count(b'[') > NESTING_MAX and _deeper_than(value, NESTING_MAX):
        raise Broken(f'a frame is nested deeper than {NESTING_MAX}')
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f'{name} is no JSON value')


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [each for each in level if isinstance(each, (dict, list))]
        if not level:
            return False
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
    return True
