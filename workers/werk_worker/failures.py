"""Why a request came to nothing, in the protocol's codes and in words that name no path outside the model's folder."""
from __future__ import annotations

import re

MESSAGE_CHARACTERS_MAX = 2000
_OUT_OF_MEMORY = re.compile(r"out of memory|bad_alloc|can't allocate memory|failed to allocate|cannot allocate", re.IGNORECASE)
_FOLDERS = re.compile(r'(?<![\w.:/])/(?:[^\s/\'":]+/)+')


class Failure(Exception):
    """A request that comes to nothing; the worker goes on."""

    def __init__(self, code: str, message: str, **numbers: int) -> None:
        super().__init__(message)
        self.code = code
        self.numbers = numbers


def failure_of(error: BaseException, otherwise: str, folder: str = '') -> Failure:
    """What an engine's own exception means; `otherwise` is the code of one that isn't about memory."""
    if isinstance(error, Failure):
        code, text = error.code, str(error)
    else:
        text = f'{type(error).__name__}: {error}'
        memory = isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(text)
        code = 'out_of_memory' if memory else 'internal' if isinstance(error, ImportError) else otherwise
    if folder:
        text = text.replace(folder.rstrip('/') + '/', '').replace(folder, "the model's folder")
    text = ' '.join(_FOLDERS.sub('', text).split())[:MESSAGE_CHARACTERS_MAX]
    return Failure(code, text, **getattr(error, 'numbers', {}))
