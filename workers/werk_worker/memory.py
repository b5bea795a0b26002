"""Gives freed memory back to the system, so that an unloaded model's is there for the next."""
import ctypes


def return_memory() -> None:
    # Only glibc has it, and only there freed memory stays behind.
    trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)
    if trim is not None:
        trim(0)
