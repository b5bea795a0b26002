"""What all workers share: the channel, the protocol's messages, the loop that answers them, and the text of tokens.

A worker is a program that holds one model and runs one generation at a time for a node (docs/worker-protocol.md). It brings an
`Engine` and calls `run`. Everything happens on one thread.
"""
from .channel import Broken, Channel, Gone
from .chat_template import JinjaTemplate, capabilities
from .detokenizer import Detokenizer
from .failures import Failure
from .folder import read_json, required_file
from .memory import return_memory
from .messages import LoadOptions, Prompt, Sampling
from .worker import Engine, EngineMissing, Loaded, Progress, Turn, Worker, run

__all__ = ['Broken', 'Channel', 'Detokenizer', 'Engine', 'EngineMissing', 'Failure', 'Gone', 'JinjaTemplate', 'LoadOptions', 'Loaded',
           'Progress', 'Prompt', 'Sampling', 'Turn', 'Worker', 'capabilities', 'read_json', 'required_file', 'return_memory', 'run']
