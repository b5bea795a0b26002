#!/usr/bin/env python3
"""The workers with their real engines and the test model, as `prepare` has left them in the folder that WERK_TEST_WORKERS names."""
from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import unittest
from collections.abc import Callable
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

from worker_process import Message, WorkerProcess  # noqa: E402

PREPARED = os.environ.get('WERK_TEST_WORKERS', '')
WATCHDOG_SECONDS = 240
RIVERS = [{'role': 'user', 'content': 'Name three rivers.'}]
GREEDY = {'temperature': 0}


def start(engine: str, **more: Any) -> WorkerProcess:
    program = os.path.join(HERE, '..', '..', 'workers', engine.replace('-', '_') + '_worker.py')
    return WorkerProcess(os.path.join(PREPARED, engine, 'bin', 'python'), program, watchdog_seconds=WATCHDOG_SECONDS,
                         environment={'OMP_NUM_THREADS': '1'}, **more)


def resident_mib(pid: int) -> int:
    with open(f'/proc/{pid}/status', encoding='utf-8') as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith('VmRSS'))


class RealWorker(unittest.TestCase):
    """What holds for each engine; the classes below name theirs."""
    folder: str
    worker: WorkerProcess
    hello: Message
    loaded: Message
    engine: str
    model: str
    # What a folder can't do without, and in which words its absence is told.
    missing: dict[str, str]
    weights: str
    settings: str
    freed_mib: int

    @classmethod
    def setUpClass(cls) -> None:
        if cls is RealWorker:
            raise unittest.SkipTest('the classes below have the engines')
        cls.folder = os.path.join(PREPARED, cls.model)
        for part in (cls.engine, cls.model):
            if not os.path.exists(os.path.join(PREPARED, part, 'ready')):
                raise unittest.SkipTest(f'{part} is not prepared: tests/workers/prepare FOLDER, and WERK_TEST_WORKERS=FOLDER')
        cls.worker = start(cls.engine, log=None)
        cls.hello = cls.worker.expect('hello')
        cls.loaded = cls.worker.load(cls.folder, threads=1)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.worker.__exit__()

    def failed_load(self, folder: str, **options: Any) -> Message:
        return self.worker.expect('failed', self.worker.send('load', folder=folder, options=options))

    def test_it_tells_engine_context_and_template(self) -> None:
        self.assertEqual((self.hello['engine'], self.loaded['context'], self.loaded['template']['tools']),
                         (self.engine, 8192, False))

    def test_a_chat_is_answered_with_sense_and_its_end_is_not_shown(self) -> None:
        text, end = self.worker.answer(RIVERS, sampling=GREEDY, max_tokens=120)
        self.assertIn('river', text.lower())
        self.assertNotIn('<|im_end|>', text)
        self.assertLessEqual(end['completion_tokens'], 120)
        text, end = self.worker.answer([{'role': 'user', 'content': 'Say hi.'}], sampling=GREEDY)
        self.assertEqual(end['reason'], 'stop')

    def test_the_tokens_add_up_to_the_usage_and_no_character_is_broken(self) -> None:
        *tokens, end = self.worker.tokens(self.worker.generate('Emoji: 🌍🌎🌏 🐋🐳 🦊', sampling={'seed': 1}, max_tokens=40))
        self.assertEqual(sum(token['tokens'] for token in tokens), end['completion_tokens'])
        self.assertNotIn('\ufffd', ''.join(token['text'] for token in tokens))

    def test_a_count_is_what_the_usage_tells(self) -> None:
        for prompt in ({'messages': RIVERS}, {'prompt': 'Grüße aus 世界 🌍'},
                       {'messages': [{'role': 'system', 'content': 'Be brief.'}, *RIVERS, {'role': 'assistant', 'content': 'Elbe.'},
                                     *RIVERS]}):
            counted = self.worker.expect('counted', self.worker.send('count', **prompt))
            id = self.worker.send('generate', **prompt, sampling={}, max_tokens=1)
            self.assertEqual(self.worker.expect('started', id)['prompt_tokens'], counted['tokens'])
            *_, end = self.worker.tokens(id)
            self.assertEqual(end['prompt_tokens'], counted['tokens'])

    def test_the_same_seed_gives_the_same_text_and_another_one_another(self) -> None:
        def text(seed: int) -> str:
            return self.worker.answer(RIVERS, sampling={'seed': seed, 'temperature': 1.0}, max_tokens=16)[0]
        first = text(5)
        self.assertNotEqual(text(6), first)
        self.assertEqual(text(5), first)

    def test_every_sampling_member_is_taken(self) -> None:
        sampling = {'temperature': 0.8, 'top_p': 0.9, 'top_k': 40, 'min_p': 0.05, 'repetition_penalty': 1.1, 'seed': 1 << 62}
        self.assertEqual(self.worker.answer(RIVERS, sampling=sampling, max_tokens=3)[1]['completion_tokens'], 3)
        narrow = self.worker.answer(RIVERS, sampling={'temperature': 1.0, 'min_p': 1.0, 'seed': 3}, max_tokens=12)[0]
        self.assertEqual(narrow, self.worker.answer(RIVERS, sampling=GREEDY, max_tokens=12)[0])

    def test_a_cancel_ends_it_before_another_token_is_computed(self) -> None:
        id = self.worker.generate(RIVERS, sampling=GREEDY)
        self.worker.expect('started', id)
        self.worker.expect('token', id)
        self.worker.send('cancel', id=id)
        *late, end = self.worker.tokens(id)
        self.assertEqual(end['reason'], 'cancelled')
        # One may have been on its way.
        self.assertLessEqual(len(late), 1)

    def test_a_long_prompt_is_cancelled_in_the_middle_and_pings_are_answered_meanwhile(self) -> None:
        id = self.worker.generate('word ' * 7000, sampling=GREEDY)
        self.worker.expect('started', id)
        self.worker.expect('pong', self.worker.send('ping'))
        self.assertEqual(self.worker.expect('counted', self.worker.send('count', prompt='one two'))['tokens'], 2)
        self.worker.send('cancel', id=id)
        self.assertEqual(self.worker.expect('finished', id)['completion_tokens'], 0)

    def test_a_giant_prompt_is_refused_with_both_numbers(self) -> None:
        failed = self.worker.expect('failed', self.worker.generate('word ' * 20000))
        self.assertEqual((failed['code'], failed['context']), ('context_length_exceeded', 8192))
        self.assertGreater(failed['prompt_tokens'], 20000)

    def test_a_chat_that_the_template_cannot_render_is_refused(self) -> None:
        failed = self.worker.expect('failed', self.worker.generate([{'role': 'user'}]))
        self.assertEqual(failed['code'], 'invalid_request')

    def test_models_change_places_memory_comes_back_and_bad_folders_are_told(self) -> None:
        before = resident_mib(self.worker.process.pid)
        self.worker.expect('unloaded', self.worker.send('unload'))
        self.assertGreater(before - resident_mib(self.worker.process.pid), self.freed_mib)
        self.assertIn("doesn't exist", self.failed_load('/nonexistent')['message'])
        failed = self.failed_load(self.folder, device='cuda')
        self.assertEqual(failed['code'], 'device_missing')
        self.assertNotIn(PREPARED, failed['message'])
        for name, words in self.missing.items():
            self.bad_folder(name, os.remove, words)
        self.bad_folder(self.settings, lambda path: replace(path, b'{"model_type":'), f"{self.settings} of the model's folder can't be")
        self.bad_folder(self.weights, lambda path: replace(path, b'no weights'), '')
        self.assertEqual(self.worker.load(self.folder, threads=1, context=50)['context'], 50)
        self.assertEqual(self.worker.answer('word ' * 40, sampling=GREEDY)[1]['reason'], 'context')
        self.worker.expect('unloaded', self.worker.send('unload'))
        self.worker.load(self.folder, threads=1)

    def link(self, folder: str) -> None:
        for each in os.listdir(self.folder):
            os.symlink(os.path.join(self.folder, each), os.path.join(folder, each))

    def bad_folder(self, name: str, spoil: Callable[[str], None], words: str) -> None:
        with self.subTest(name=name, words=words), tempfile.TemporaryDirectory() as folder:
            self.link(folder)
            spoil(os.path.join(folder, name))
            failed = self.failed_load(folder)
            self.assertEqual(failed['code'], 'model_unusable')
            self.assertIn(words, failed['message'])
            self.assertNotIn(folder, failed['message'])

    def test_the_token_that_begins_a_text_is_added_once(self) -> None:
        """A tokenizer that adds one, with a template that writes it too."""
        def counts() -> list[int]:
            return [self.worker.expect('counted', self.worker.send('count', **prompt))['tokens']
                    for prompt in ({'messages': RIVERS}, {'prompt': 'Name three rivers.'})]

        def add_start(tokenizer: dict[str, Any]) -> None:
            tokenizer['post_processor'] = {
                'type': 'TemplateProcessing', 'single': [{'SpecialToken': {'id': '<|im_start|>', 'type_id': 0}},
                                                         {'Sequence': {'id': 'A', 'type_id': 0}}],
                'pair': [{'Sequence': {'id': 'A', 'type_id': 0}}, {'Sequence': {'id': 'B', 'type_id': 1}}],
                'special_tokens': {'<|im_start|>': {'id': '<|im_start|>', 'ids': [1], 'tokens': ['<|im_start|>']}}}

        chat, plain = counts()
        self.with_folder('tokenizer.json', add_start, lambda: self.assertEqual(counts(), [chat, plain + 1]))

    def with_folder(self, name: str, change: Callable[[dict[str, Any]], None], use: Callable[[], None]) -> None:
        """Loads the model with one of its JSON files changed, and then the right one again."""
        with tempfile.TemporaryDirectory() as folder:
            self.link(folder)
            path = os.path.join(folder, name)
            with open(path, encoding='utf-8') as file:
                value = json.load(file)
            change(value)
            replace(path, json.dumps(value).encode())
            self.worker.expect('unloaded', self.worker.send('unload'))
            self.worker.load(folder, threads=1)
            use()
            self.worker.expect('unloaded', self.worker.send('unload'))
            self.worker.load(self.folder, threads=1)

    def test_it_ends_with_the_node_and_by_a_signal_in_the_middle(self) -> None:
        for end in (lambda each: each.socket.close(), lambda each: each.process.send_signal(signal.SIGTERM)):
            with start(self.engine) as other:
                other.expect('hello')
                other.load(self.folder, threads=1)
                id = other.generate(RIVERS, sampling=GREEDY)
                other.expect('started', id)
                other.expect('token', id)
                end(other)
                self.assertIn(other.ended()[0], (0, -signal.SIGTERM))


def replace(path: str, data: bytes) -> None:
    os.remove(path)
    with open(path, 'wb') as file:
        file.write(data)


class OnnxGenai(RealWorker):
    engine = 'onnx-genai'
    model = 'smollm2-onnx'
    missing = {'genai_config.json': 'lacks genai_config.json: it makes a folder one of ONNX GenAI', 'model.onnx': 'lacks model.onnx',
               'model.onnx.data': 'model.onnx.data', 'tokenizer.json': 'lacks tokenizer.json'}
    settings = 'genai_config.json'
    weights = 'model.onnx'
    freed_mib = 50

    def test_a_large_context_of_which_little_is_used_takes_little_memory(self) -> None:
        def ask() -> str:
            return self.worker.answer(RIVERS, sampling=GREEDY)[0]

        def enlarge(config: dict[str, Any]) -> None:
            config['model']['context_length'] = config['search']['max_length'] = 1 << 20

        usual = ask()

        def use() -> None:
            self.assertEqual(ask(), usual)
            with open(f'/proc/{self.worker.process.pid}/status', encoding='utf-8') as file:
                peak = next(int(line.split()[1]) // 1024 for line in file if line.startswith('VmHWM'))
            self.assertLess(peak, 2000)

        self.with_folder('genai_config.json', enlarge, use)


class Transformers(RealWorker):
    engine = 'transformers'
    model = 'smollm2-hf'
    missing = {'config.json': 'lacks config.json: it says what the model is', 'model.safetensors': 'lacks model.safetensors',
               'tokenizer.json': 'lacks tokenizer.json'}
    settings = 'config.json'
    weights = 'model.safetensors'
    freed_mib = 300


if __name__ == '__main__':
    unittest.main()
