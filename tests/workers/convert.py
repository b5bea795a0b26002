#!/usr/bin/env python3
"""convert.py GGUF FOLDER: writes a GGUF model as a Hugging Face folder. Runs in the Transformers environment, with the packages of
convert.txt on its path."""
import os
import sys

os.environ.update(HF_HUB_OFFLINE='1', TRANSFORMERS_OFFLINE='1', HF_HUB_DISABLE_PROGRESS_BARS='1', TQDM_DISABLE='1')

import torch  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402


def main():
    gguf, folder = sys.argv[1:]
    place, name = os.path.split(os.path.abspath(gguf))
    tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=name, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.float32, local_files_only=True)
    # The weights are plain numbers by now, but the model still calls itself quantised, and such a one isn't saved.
    model.hf_quantizer = None
    if hasattr(model.config, 'quantization_config'):
        del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == '__main__':
    main()
