#!/usr/bin/env python3
"""The worker for Hugging Face folders, by Transformers and torch (requirements/transformers.txt). It reads local files only, and
never runs code of a model's folder."""
from __future__ import annotations

import copy
import gc
import importlib.util
import inspect
import os
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import werk_worker as worker

# So many tokens of a prompt are computed between two looks at the inbox; smaller parts make a prompt slower.
PROMPT_CHUNK_TOKENS = 256
DTYPES = ('auto', 'float32', 'float16', 'bfloat16')
OFFLINE = {'HF_HUB_OFFLINE': '1', 'TRANSFORMERS_OFFLINE': '1', 'HF_HUB_DISABLE_TELEMETRY': '1', 'TQDM_DISABLE': '1',
           'TRANSFORMERS_VERBOSITY': 'error', 'TOKENIZERS_PARALLELISM': 'false'}
# torch's threads wait for one another by spinning, which takes the cores from whatever else runs: with two threads on two busy cores
# a token took seven times as much computing.
WAITING = {'OMP_WAIT_POLICY': 'passive'}


class Transformers:
    name = 'transformers'
    can: Sequence[str] = ('tools', 'seed', 'cancel', 'count')

    def __init__(self) -> None:
        for package in ('torch', 'transformers', 'jinja2'):
            if importlib.util.find_spec(package) is None:
                raise worker.EngineMissing(f'this Python has no {package}; `werk engine install transformers` makes one that has')
        self.version = metadata.version('transformers')
        self._forget()

    def _forget(self) -> None:
        self._model: Any = None
        self._tokenizer: Any = None
        self._own: dict[str, Any] = {}
        self._ends: list[int] = []

    def load(self, folder: str, options: worker.LoadOptions, progress: worker.Progress) -> worker.Loaded:
        # The libraries take a folder that lacks something for a name on a hub, and say so; better words come from here.
        kind = _check(folder)
        self._own = worker.read_json(folder, 'generation_config.json')
        progress('loading torch', None)
        import torch
        import transformers
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
        if kind not in CONFIG_MAPPING_NAMES:
            raise worker.Failure('model_unusable', f'Transformers {self.version} knows no models of type {kind}, and code in a '
                                 "model's folder is never run")
        if options.threads:
            torch.set_num_threads(options.threads)
        device, dtype = _place(torch, options)
        progress('loading the tokenizer', None)
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        progress('loading the weights', None)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, trust_remote_code=False,
                                                                  use_safetensors=True, dtype=dtype)
        self._model = model.to(device).eval()
        self._ends = self._end_tokens()
        return worker.Loaded(self._context(options.context), worker.capabilities(self.render))

    def _context(self, wanted: int | None) -> int:
        """The shortest of what the model, its tokenizer and the node allow; 0 when none says anything."""
        of_model = getattr(self._model.config.get_text_config(), 'max_position_embeddings', None)
        # A tokenizer without a limit has an absurdly large one.
        of_tokenizer = self._tokenizer.model_max_length
        known = [size for size in (of_model, of_tokenizer, wanted) if type(size) is int and 0 < size < 1 << 30]
        return min(known, default=0)

    def _end_tokens(self) -> list[int]:
        """What ends a turn: by the generation configuration (a number or a list), the model's, and the tokenizer."""
        ends: set[int] = set()
        for value in (self._model.generation_config.eos_token_id, self._model.config.eos_token_id, self._tokenizer.eos_token_id):
            ends.update(value if isinstance(value, list) else [value] if value is not None else [])
        return sorted(ends)

    def unload(self) -> None:
        self._forget()
        gc.collect()
        worker.return_memory()

    def render(self, prompt: worker.Prompt) -> str:
        if not self._tokenizer.chat_template:
            raise worker.Failure('invalid_request', 'this model has no chat template; it completes plain text only')
        apply = self._tokenizer.apply_chat_template
        reserved = prompt.variables.keys() & inspect.signature(apply).parameters.keys()
        if reserved:
            raise worker.Failure('invalid_request', f'{min(reserved)} can\'t be a variable of the template')
        try:
            text: str = apply(prompt.messages, tools=prompt.tools or None, add_generation_prompt=True, tokenize=False,
                              **prompt.variables)
            return text
        # A template is a program: given messages that it doesn't expect it fails in every way a program can.
        except Exception as error:
            raise worker.Failure('invalid_request', f"the model's chat template refuses this: {error}") from error

    def encode(self, prompt: worker.Prompt) -> Sequence[int]:
        # A template writes the token that begins a text itself.
        text = self.render(prompt) if prompt.text is None else prompt.text
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=prompt.text is not None)
        return tokens

    def generate(self, prompt: Sequence[int], sampling: worker.Sampling, limit: int, turn: worker.Turn) -> bool:
        import torch
        if sampling.seed is None:
            torch.seed()
        else:
            torch.manual_seed(sampling.seed % (1 << 63))
        streamer = Streamer(self._decode, self._ends, turn)
        # Looks at the inbox before each step, those of the prompt's parts included.
        hook = self._model.register_forward_pre_hook(lambda *_: turn.poll())
        try:
            ids = torch.tensor([prompt], device=self._model.device)
            with torch.inference_mode():
                self._model.generate(ids, attention_mask=torch.ones_like(ids), streamer=streamer,
                                     generation_config=self._configuration(sampling, len(prompt), limit))
        finally:
            hook.remove()
        return streamer.ended

    def _decode(self, tokens: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    def _configuration(self, sampling: worker.Sampling, prompt_tokens: int, limit: int) -> Any:
        configuration = copy.deepcopy(self._model.generation_config)
        chunked = prompt_tokens > PROMPT_CHUNK_TOKENS and not getattr(self._model, '_is_stateful', False)
        configuration.update(max_new_tokens=limit, max_length=None, num_beams=1, num_return_sequences=1, use_cache=True,
                             return_dict_in_generate=False, eos_token_id=self._ends or None,
                             pad_token_id=self._ends[0] if self._ends else None,
                             prefill_chunk_size=PROMPT_CHUNK_TOKENS if chunked else None, **self._chosen(sampling))
        return configuration

    def _chosen(self, sampling: worker.Sampling) -> dict[str, Any]:
        """How tokens are chosen: by the request, else the model's own configuration, else plain sampling."""
        plain = {'temperature': 1.0, 'top_p': 1.0, 'top_k': 0, 'min_p': None}
        penalty = sampling.repetition_penalty or self._own.get('repetition_penalty') or 1.0
        by_default = self._own.get('do_sample', True)
        if sampling.temperature == 0 or (sampling.temperature is None and not by_default):
            return plain | {'do_sample': False, 'repetition_penalty': penalty}
        # What a model that isn't meant to sample says about sampling doesn't count.
        own = self._own if by_default else {}
        chosen = {name: value if (value := getattr(sampling, name)) is not None else own.get(name, usual)
                  for name, usual in plain.items()}
        return chosen | {'do_sample': True, 'repetition_penalty': penalty}


class Streamer:
    """Hands each token of `generate` on as text; the first call brings the prompt."""

    def __init__(self, decode: Any, ends: Sequence[int], turn: worker.Turn) -> None:
        self._text = worker.Detokenizer(decode)
        self._ends = ends
        self._turn = turn
        self._saw_prompt = False
        self.ended = False

    def put(self, tokens: Any) -> None:
        if not self._saw_prompt:
            self._saw_prompt = True
            return
        for token in tokens.tolist():
            if token in self._ends:
                self.ended = True
            else:
                self._turn.token(self._text.add(token))

    def end(self) -> None:
        pass


def _check(folder: str) -> str:
    """The type of the model in a folder; refuses one that isn't a model's, with what is missing."""
    config = worker.read_json(folder, 'config.json', 'it says what the model is')
    index = worker.read_json(folder, 'model.safetensors.index.json')
    for name in sorted(set(index.get('weight_map', {}).values())) if index else ['model.safetensors']:
        worker.required_file(folder, str(name), 'it holds weights')
    if not any(os.path.isfile(os.path.join(folder, name)) for name in ('tokenizer.json', 'tokenizer.model', 'vocab.json')):
        worker.required_file(folder, 'tokenizer.json', 'without a tokenizer no text becomes tokens')
    kind = config.get('model_type')
    if not isinstance(kind, str):
        raise worker.Failure('model_unusable', 'config.json tells no model_type')
    return kind


def _place(torch: Any, options: worker.LoadOptions) -> tuple[Any, Any]:
    """The device and the number format."""
    name = options.device or 'cpu'
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    # Each kind of device has its own way to say that it isn't there.
    except Exception as error:
        raise worker.Failure('device_missing', f'torch finds no device {name} here: {str(error).splitlines()[0]}') from error
    dtype = options.dtype or ('float32' if device.type == 'cpu' else 'auto')
    if dtype not in DTYPES:
        raise worker.Failure('invalid_request', f'the dtype {dtype} is unknown; there are {", ".join(DTYPES)}')
    return device, dtype if dtype == 'auto' else getattr(torch, dtype)


def main() -> None:
    os.environ.update(WAITING | os.environ | OFFLINE)  # how threads wait is the user's, if it is set
    worker.run(lambda _: Transformers())


if __name__ == '__main__':
    main()
