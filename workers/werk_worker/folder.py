"""Files of a model's folder, with failures that say what is missing."""
from __future__ import annotations

import json
import os
from typing import Any

from .failures import Failure


def required_file(folder: str, name: str, why: str) -> str:
    """The path of a file that the model can't do without."""
    if not os.path.isdir(folder):
        raise Failure('model_unusable', "the model's folder doesn't exist")
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        raise Failure('model_unusable', f"the model's folder lacks {name}: {why}")
    return path


def read_json(folder: str, name: str, required_because: str | None = None) -> dict[str, Any]:
    """A file that holds a JSON object; empty when it is absent and may be."""
    path = os.path.join(folder, name)
    if required_because is not None:
        required_file(folder, name, required_because)
    elif not os.path.isfile(path):
        return {}
    try:
        with open(path, encoding='utf-8') as file:
            value = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise Failure('model_unusable', f"{name} of the model's folder can't be read: {error}") from error
    if not isinstance(value, dict):
        raise Failure('model_unusable', f"{name} of the model's folder holds no JSON object")
    return value
