#!/usr/bin/env python3
"""The worker for folders of ONNX Runtime GenAI. It needs the package onnxruntime-genai and jinja2 (requirements/onnx-genai.txt)."""
from __future__ import annotations

import gc
import importlib.util
import json
import math
import os
import random
import re
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import werk_worker as worker

# So many tokens of a prompt are computed between two looks at the inbox; more at once is not faster on a CPU.
PROMPT_CHUNK_TOKENS = 64
# The engine sorts every token there is when it isn't told how many may come, which doubles a token's time; those beyond so many
# have next to no chance.
CANDIDATES_MAX = 4096
# A cache of keys and values that would be larger grows with the text instead of being made whole at once, which costs some speed.
CACHE_BYTES_MAX = 1 << 30
CACHE_NUMBER_BYTES = 4
_DEVICE_MISSING = re.compile(r'interface not available|Unknown provider|provider is not (?:enabled|supported)', re.IGNORECASE)


class OnnxGenai:
    name = 'onnx-genai'
    can: Sequence[str] = ('tools', 'seed', 'cancel', 'count')

    def __init__(self) -> None:
        for package in ('onnxruntime_genai', 'jinja2'):
            if importlib.util.find_spec(package) is None:
                raise worker.EngineMissing(f'this Python has no {package}; `werk engine install onnx-genai` makes one that has')
        # Builds for other devices have names of their own.
        self.version = metadata.version(metadata.packages_distributions()['onnxruntime_genai'][0])
        self._forget()

    def _forget(self) -> None:
        self._config: dict[str, Any] = {}
        self._model: Any = None
        self._tokenizer: Any = None
        self._template: worker.JinjaTemplate | None = None
        self._ends: set[int] = set()

    def load(self, folder: str, options: worker.LoadOptions, progress: worker.Progress) -> worker.Loaded:
        self._config = worker.read_json(folder, 'genai_config.json', 'it makes a folder one of ONNX GenAI')
        described = self._config.get('model', {})
        context = described.get('context_length')
        if type(context) is not int or context < 1:
            raise worker.Failure('model_unusable', 'genai_config.json tells no context_length')
        for part in described.values():
            if isinstance(part, dict) and isinstance(part.get('filename'), str):
                worker.required_file(folder, part['filename'], 'genai_config.json names it')
        worker.required_file(folder, 'tokenizer.json', 'without it no text becomes tokens')
        self._template = worker.JinjaTemplate.of_folder(folder)

        progress('loading ONNX Runtime', None)
        import onnxruntime_genai
        onnxruntime_genai.disable_telemetry_events()
        progress('loading the model', None)
        try:
            self._model = onnxruntime_genai.Model(self._session(onnxruntime_genai.Config(folder), options))
        except RuntimeError as error:
            if _DEVICE_MISSING.search(str(error)) is None:
                raise
            raise worker.Failure('device_missing', f'this engine has no such device: {error}') from error
        self._tokenizer = onnxruntime_genai.Tokenizer(self._model)
        # Tool calls are told by special tokens in some models, so they stay in the text; only ends don't.
        self._tokenizer.update_options(skip_special_tokens='false')
        self._ends = {int(token) for token in self._tokenizer.eos_token_ids}
        return worker.Loaded(min(context, options.context or context),
                             worker.capabilities(self.render if self._template else None))

    def _session(self, config: Any, options: worker.LoadOptions) -> Any:
        # Threads that wait by spinning take the cores from whatever else runs: two workers of two threads each on two cores gave 15
        # tokens a second with it, and 60 without.
        session: dict[str, Any] = {'session.intra_op.allow_spinning': '0'}
        if options.threads:
            session['intra_op_num_threads'] = options.threads
        config.overlay(json.dumps({'model': {'decoder': {'session_options': session}}}))
        if options.device:
            config.clear_providers()
        if options.device and options.device != 'cpu':
            config.append_provider(options.device)
        return config

    def unload(self) -> None:
        self._forget()
        gc.collect()
        worker.return_memory()

    def render(self, prompt: worker.Prompt) -> str:
        if self._template is None:
            raise worker.Failure('invalid_request', 'this model has no chat template; it completes plain text only')
        return self._template(prompt)

    def encode(self, prompt: worker.Prompt) -> Sequence[int]:
        text = self.render(prompt) if prompt.text is None else prompt.text
        # A template writes the token that begins a text itself.
        self._tokenizer.update_options(add_special_tokens='false' if prompt.text is None else 'true')
        tokens: Sequence[int] = self._tokenizer.encode(text)
        return tokens

    def generate(self, prompt: Sequence[int], sampling: worker.Sampling, limit: int, turn: worker.Turn) -> bool:
        import onnxruntime_genai
        parameters = onnxruntime_genai.GeneratorParams(self._model)
        search = self._search(sampling)
        tokens = len(prompt) + limit
        if self._cache_token_bytes() * tokens > CACHE_BYTES_MAX:
            search['past_present_share_buffer'] = False
        parameters.set_search_options(max_length=tokens, **search)
        generator = onnxruntime_genai.Generator(self._model, parameters)
        for start in range(0, len(prompt), PROMPT_CHUNK_TOKENS):
            turn.poll()
            generator.append_tokens(prompt[start:start + PROMPT_CHUNK_TOKENS])
        turn.poll()
        least = sampling.min_p if sampling.min_p and search['do_sample'] else None
        text = worker.Detokenizer(self._tokenizer.decode)
        for _ in range(limit):
            if least is not None:
                self._drop_unlikely(generator, search['temperature'] * math.log(least))
            generator.generate_next_token()
            token = int(generator.get_next_tokens()[0])
            if token in self._ends:
                return True
            turn.token(text.add(token))
        return False

    def _cache_token_bytes(self) -> int:
        """What a token takes in the cache of keys and values; 0 when the folder doesn't tell."""
        decoder = self._config['model'].get('decoder', {})
        sizes = [decoder.get(name, 0) for name in ('num_hidden_layers', 'num_key_value_heads', 'head_size')]
        return 2 * CACHE_NUMBER_BYTES * int(math.prod(sizes))

    def _search(self, sampling: worker.Sampling) -> dict[str, Any]:
        """The engine's options: the request's, else the folder's own, else plain sampling."""
        own = self._config.get('search', {})
        options = {'repetition_penalty': own.get('repetition_penalty', 1.0)}
        if sampling.repetition_penalty is not None:
            options['repetition_penalty'] = sampling.repetition_penalty
        by_default = own.get('do_sample', True)
        if sampling.temperature == 0 or (sampling.temperature is None and not by_default):
            return options | {'do_sample': False}
        # Where the model isn't meant to sample by default, the other members are the format's, not the model's.
        chosen = {'temperature': 1.0, 'top_p': 1.0, 'top_k': 0}
        for name, plain in chosen.items():
            value = getattr(sampling, name)
            chosen[name] = value if value is not None else own.get(name, plain) if by_default else plain
        chosen['top_k'] = min(chosen['top_k'] or CANDIDATES_MAX, self._config['model'].get('vocab_size', CANDIDATES_MAX))
        seed = random.getrandbits(31) if sampling.seed is None else sampling.seed % (1 << 31)
        return options | chosen | {'do_sample': True, 'random_seed': seed}

    @staticmethod
    def _drop_unlikely(generator: Any, distance: float) -> None:
        """What min_p means: tokens less likely than that part of the likeliest one don't come."""
        logits = generator.get_logits()
        logits[logits < logits.max() + distance] = -math.inf
        generator.set_logits(logits)


def main() -> None:
    os.environ.update(HF_HUB_OFFLINE='1')
    worker.run(lambda _: OnnxGenai())


if __name__ == '__main__':
    main()
