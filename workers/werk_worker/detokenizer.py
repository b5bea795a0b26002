"""Tokens to text, piece by piece: what was said once never changes, and no character goes out before it is whole."""
from __future__ import annotations

from collections.abc import Callable, Sequence

# What decoders write for bytes that are no character (yet).
_REPLACEMENT = '\ufffd'
# A character has at most four bytes, so it is whole after at most four tokens; more stay as context, because the first token of a
# text may lose its space.
_CONTEXT_TOKENS = 6
_WINDOW_TOKENS = 32
_HELD_TOKENS_MAX = 64


class Detokenizer:
    """One answer's text. `decode` turns token ids into text, special tokens included."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._window: list[int] = []
        self._sent = 0  # characters of the window's text that went out

    def add(self, token: int) -> str:
        """The text that this token makes final; empty while a character is incomplete."""
        self._window.append(token)
        text = self._decode(self._window)
        final = text.rstrip(_REPLACEMENT)
        if len(self._window) >= _HELD_TOKENS_MAX:
            final = text  # no character takes that long: the model means it
        piece = final[self._sent:]
        self._sent = max(self._sent, len(final))
        if len(self._window) >= _WINDOW_TOKENS and len(final) == len(text):
            self._window = self._window[-_CONTEXT_TOKENS:]
            self._sent = len(self._decode(self._window))
        return piece
