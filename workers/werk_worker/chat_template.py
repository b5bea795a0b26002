"""The model's own chat template: rendering it with Jinja, and what it can do."""
from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable
from typing import Any

from .failures import Failure
from .folder import read_json
from .messages import Prompt

Render = Callable[[Prompt], str]
_SENTINEL = 'werk_probe'
_TOOL = {'type': 'function', 'function': {'name': _SENTINEL, 'description': 'A probe.', 'parameters': {
    'type': 'object', 'properties': {'word': {'type': 'string', 'description': 'A word.'}}, 'required': ['word']}}}


def capabilities(render: Render | None) -> dict[str, bool]:
    """Whether the template shows tools, and whether it takes a system message after the first turn; found by trying."""
    ask = {'role': 'user', 'content': 'word'}
    answer = {'role': 'assistant', 'content': 'word'}
    later = {'role': 'system', 'content': _SENTINEL}
    return {'tools': _shows_sentinel(render, Prompt(messages=[ask], tools=[_TOOL])),
            'later_system': _shows_sentinel(render, Prompt(messages=[ask, answer, later, ask]))}


def _shows_sentinel(render: Render | None, prompt: Prompt) -> bool:
    try:
        return render is not None and _SENTINEL in render(prompt)
    except Failure:
        return False


class JinjaTemplate:
    """A template of a folder, for engines whose own packages render none with variables of the caller."""

    def __init__(self, source: str, tool_source: str | None = None, tokens: dict[str, str] | None = None) -> None:
        import jinja2
        import jinja2.sandbox
        self._error = jinja2.TemplateError
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=['jinja2.ext.loopcontrols'])
        environment.filters['tojson'] = _to_json
        environment.globals.update(raise_exception=self._raise, strftime_now=_strftime_now)
        try:
            self._plain = environment.from_string(source)
            self._tools = environment.from_string(tool_source) if tool_source is not None else self._plain
        except jinja2.TemplateError as error:
            raise Failure('model_unusable', f"the model's chat template is malformed: {error}") from error
        self._tokens = tokens or {}

    @classmethod
    def of_folder(cls, folder: str) -> JinjaTemplate | None:
        """The template of chat_template.jinja or tokenizer_config.json; None when there is none."""
        tokenizer = read_json(folder, 'tokenizer_config.json')
        tokens = {name: text for name in ('bos_token', 'eos_token', 'pad_token', 'unk_token')
                  if (text := _token_text(tokenizer.get(name))) is not None}
        source, tool_source = _sources(tokenizer.get('chat_template'))
        path = os.path.join(folder, 'chat_template.jinja')
        if os.path.isfile(path):
            with open(path, encoding='utf-8', errors='replace') as file:
                source, tool_source = file.read(), None
        return cls(source, tool_source, tokens) if source is not None else None

    def __call__(self, prompt: Prompt) -> str:
        template = self._tools if prompt.tools else self._plain
        variables = self._tokens | prompt.variables | {
            'messages': prompt.messages, 'tools': prompt.tools or None, 'add_generation_prompt': True}
        try:
            text: str = template.render(**variables)
            return text
        # A template is a program: given messages that it doesn't expect it fails in every way a program can.
        except Exception as error:
            raise Failure('invalid_request', f"the model's chat template refuses this: {error}") from error

    def _raise(self, message: str) -> None:
        raise self._error(message)


def _sources(value: Any) -> tuple[str | None, str | None]:
    """A template is a text, or a list of named ones of which one may be for tools."""
    if isinstance(value, str):
        return value, None
    named = {each.get('name'): each.get('template') for each in value or [] if isinstance(each, dict)}
    return named.get('default'), named.get('tool_use')


def _token_text(value: Any) -> str | None:
    text = value.get('content') if isinstance(value, dict) else value
    return text if isinstance(text, str) else None


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None,
             sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _strftime_now(form: str) -> str:
    return datetime.datetime.now().strftime(form)
