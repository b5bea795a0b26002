"""The workers' loop, driven over its channel, with the fake worker as the engine."""
from __future__ import annotations

import base64
import json
import os
import socket
import sys
import tempfile
import unittest
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

from worker_process import Message, WorkerProcess  # noqa: E402

FAKE = os.path.join(HERE, 'fake_worker.py')
WATCHDOG_SECONDS = 30


class Control:
    """The test's side of the fake's control socket."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(1)
        self._listener.settimeout(WATCHDOG_SECONDS)
        self._lines: Any = None

    def expect(self, event: str) -> Message:
        """The next event of that name; others are passed over."""
        if self._lines is None:
            self._socket, _ = self._listener.accept()
            self._socket.settimeout(WATCHDOG_SECONDS)
            self._lines = self._socket.makefile('r')
        for line in self._lines:
            told = json.loads(line)
            if told['event'] == event:
                return told
        raise AssertionError(f'the fake ended before {event}')

    def order(self, what: str, **members: Any) -> None:
        self._socket.sendall(json.dumps({'do': what, **members}).encode() + b'\n')

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._socket.close()
        self._listener.close()


class WorkerTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name
        self.starts = 0

    def start(self, **settings: Any) -> WorkerProcess:
        self.starts += 1
        self.control = Control(os.path.join(self.folder, f'control-{self.starts}'))
        self.addCleanup(self.control.close)
        script = os.path.join(self.folder, 'script.json')
        with open(script, 'w', encoding='utf-8') as file:
            json.dump(settings, file)
        started = WorkerProcess(sys.executable, FAKE, watchdog_seconds=WATCHDOG_SECONDS, environment={
            'FAKE_ENGINE_SCRIPT': script, 'FAKE_ENGINE_CONTROL': self.control.path})
        self.addCleanup(started.__exit__)
        self.hello = started.expect('hello')
        return started

    def start_loaded(self, **settings: Any) -> WorkerProcess:
        started = self.start(**settings)
        started.load(self.folder)
        return started

    def expect_fault(self, started: WorkerProcess, words: str) -> None:
        self.assertIn(words, started.expect('fault')['message'])
        self.assertIsNone(started.receive())
        status, output = started.ended()
        self.assertEqual(status, 3)
        self.assertIn(words, output)


class Life(WorkerTest):
    def test_it_says_who_it_is_loads_with_progress_answers_and_stops(self) -> None:
        started = self.start(progress=2, context=100)
        self.assertEqual(self.hello, {'type': 'hello', 'protocol': 1, 'engine': 'fake', 'engine_version': '1.0',
                                      'can': ['tools', 'seed', 'cancel', 'count']})
        id = started.send('load', folder=self.folder, options={})
        self.assertEqual([started.receive() for _ in range(3)], [
            {'type': 'progress', 'id': id, 'what': 'step 1', 'fraction': 0.0},
            {'type': 'progress', 'id': id, 'what': 'step 2', 'fraction': 0.5},
            {'type': 'loaded', 'id': id, 'context': 100, 'template': {'tools': True, 'later_system': True}}])
        id = started.generate('one two three')
        self.assertEqual(started.receive(), {'type': 'started', 'id': id, 'prompt_tokens': 3, 'cached_tokens': 0})
        *tokens, end = started.tokens(id)
        self.assertEqual(len(tokens), 5)
        self.assertEqual(end, {'type': 'finished', 'id': id, 'reason': 'stop', 'prompt_tokens': 3, 'cached_tokens': 0,
                               'completion_tokens': 5})
        started.send('stop')
        self.assertIsNone(started.receive())
        self.assertEqual(started.ended()[0], 0)

    def test_a_failed_load_leaves_it_ready_for_another_and_says_why(self) -> None:
        started = self.start(models={'bad': {'load_failed': {'code': 'out_of_memory', 'message': 'too big'}},
                                     'odd': {'needs_folder': True}})
        failed = started.expect('failed', started.send('load', folder='/bad', options={}))
        self.assertEqual((failed['code'], failed['message']), ('out_of_memory', 'too big'))
        failed = started.expect('failed', started.send('load', folder='/odd', options={}))
        self.assertEqual((failed['code'], failed['message']), ('model_unusable', "the model's folder doesn't exist"))
        started.load('/good')
        self.assertEqual(started.answer('hello')[1]['reason'], 'stop')

    def test_a_model_is_exchanged_by_unloading_it_first(self) -> None:
        started = self.start_loaded(models={'small': {'context': 10}})
        started.expect('unloaded', started.send('unload'))
        self.control.expect('unloaded')
        self.assertEqual(started.load('/small')['context'], 10)

    def test_what_libraries_print_stays_out_of_the_channel(self) -> None:
        started = self.start_loaded(reply={'noise': True})
        self.assertEqual(started.answer('hello')[1]['completion_tokens'], 5)
        started.send('stop')
        self.assertIn('noise on the standard output', started.ended()[1])

    def test_it_ends_at_once_when_the_node_is_gone(self) -> None:
        for prompt in (None, 'held [hold]', 'long [tokens=100000]'):
            with self.subTest(prompt=prompt):
                with WorkerProcess(sys.executable, FAKE, environment={'FAKE_ENGINE_CONTROL': ''}) as started:
                    started.expect('hello')
                    if prompt is not None:
                        started.load(self.folder)
                        started.generate(prompt)
                        started.expect('started')
                    started.socket.close()
                    self.assertEqual(started.ended()[0], 0)


    def test_a_worker_whose_engine_is_not_installed_says_so_in_the_place_of_hello(self) -> None:
        for name, package in (('onnx_genai', 'onnxruntime_genai'), ('transformers', 'torch')):
            with self.subTest(name=name):
                program = os.path.join(HERE, '..', '..', 'workers', f'{name}_worker.py')
                with WorkerProcess(sys.executable, '-S', program) as started:  # -S: without any packages
                    message = started.expect('fault')['message']
                    self.assertIn(f'has no {package}', message)
                    self.assertEqual(started.ended(), (4, f'werk worker: {message}\n'))


class Generations(WorkerTest):
    def test_the_reason_tells_who_ended_it(self) -> None:
        started = self.start_loaded(context=10)
        self.assertEqual([started.answer('a b c [tokens=4]')[1]['reason'], started.answer('a b c [tokens=50]')[1]['reason'],
                          started.answer('a b c [tokens=50]', max_tokens=2)[1]['reason'],
                          started.answer('a b c', max_tokens=0)[1]['reason']], ['stop', 'context', 'length', 'length'])
        self.assertEqual(started.answer('a b c [tokens=50]')[1]['completion_tokens'], 6)

    def test_a_prompt_that_fills_the_context_is_refused_with_both_numbers(self) -> None:
        started = self.start_loaded(context=10)
        failed = started.expect('failed', started.generate('word ' * 10))
        self.assertEqual((failed['code'], failed['prompt_tokens'], failed['context']), ('context_length_exceeded', 10, 10))
        self.assertEqual(started.answer('word ' * 9)[1]['completion_tokens'], 1)

    def test_an_empty_prompt_is_refused(self) -> None:
        started = self.start_loaded()
        failed = started.expect('failed', started.generate(''))
        self.assertEqual((failed['code'], failed['message']), ('invalid_request', 'the prompt is empty'))

    def test_the_same_seed_gives_the_same_text(self) -> None:
        started = self.start_loaded()
        def text(seed: int) -> str:
            return started.answer('hello', sampling={'seed': seed})[0]
        self.assertEqual(text(7), text(7))
        self.assertNotEqual(text(7), text(8))

    def test_a_count_is_what_the_usage_tells_later(self) -> None:
        started = self.start_loaded()
        chat = [{'role': 'user', 'content': 'how many words'}]
        counted = started.expect('counted', started.send('count', messages=chat))
        self.assertEqual(counted['tokens'], started.answer(chat)[1]['prompt_tokens'])

    def test_characters_may_be_cut_into_bytes(self) -> None:
        started = self.start_loaded(reply={'content': '世界 🌍', 'cut': 2})
        *tokens, _ = started.tokens(started.generate('hello'))
        self.assertEqual(b''.join(base64.b64decode(token['bytes']) for token in tokens).decode(), '世界 🌍')

    def test_a_failure_ends_one_generation_and_not_the_worker(self) -> None:
        started = self.start_loaded(replies=[{'failed': {'code': 'internal', 'message': 'odd'}, 'failed_after': 2}])
        *tokens, end = started.tokens(started.generate('hello'))
        self.assertEqual((len(tokens), end['type'], end['code'], end['message']), (2, 'failed', 'internal', 'odd'))
        self.assertEqual(started.answer('hello')[1]['reason'], 'stop')

    def test_sampling_out_of_range_is_refused(self) -> None:
        failed = self.start_loaded()
        self.assertEqual(failed.expect('failed', failed.generate('hello', sampling={'top_p': 2}))['code'], 'invalid_request')


class Aside(WorkerTest):
    """What is answered while a generation runs."""

    def test_ping_and_count_are_answered_between_tokens_and_cancel_ends_before_the_next(self) -> None:
        started = self.start_loaded(reply={'gated': True})
        id = started.generate('hello')
        started.expect('started', id)
        self.control.expect('generating')
        self.control.order('step', request=id)
        started.expect('token', id)
        started.expect('pong', started.send('ping'))
        self.assertEqual(started.expect('counted', started.send('count', prompt='a b c'))['tokens'], 3)
        started.send('cancel', id=id)
        end = started.expect('finished', id)
        self.assertEqual((end['reason'], end['completion_tokens']), ('cancelled', 1))
        self.control.expect('cancelled')

    def test_a_prompt_in_work_can_be_cancelled(self) -> None:
        started = self.start_loaded()
        id = started.generate('hello [hold]')
        started.expect('started', id)
        started.send('cancel', id=id)
        self.assertEqual(started.expect('finished', id)['completion_tokens'], 0)

    def test_a_cancel_of_something_else_is_ignored(self) -> None:
        started = self.start_loaded(reply={'hold': True})
        id = started.generate('hello')
        self.control.expect('generating')
        started.send('cancel', id=id - 1)
        started.expect('started', id)
        started.expect('pong', started.send('ping'))
        self.control.order('release', request=id)
        self.assertEqual(list(started.tokens(id))[-1]['reason'], 'stop')
        started.send('cancel', id=id)
        started.expect('pong', started.send('ping'))

    def test_stop_ends_it_in_the_middle(self) -> None:
        started = self.start_loaded()
        started.expect('started', started.generate('hello [hold]'))
        started.send('stop')
        self.assertEqual(started.ended()[0], 0)

    def test_a_load_answers_pings(self) -> None:
        started = self.start(load='hold')
        id = started.send('load', folder=self.folder, options={})
        self.control.expect('loading')
        started.expect('pong', started.send('ping'))
        self.control.order('ready')
        started.expect('loaded', id)


class OutOfTurn(WorkerTest):
    def test_requests_without_a_model_end_it(self) -> None:
        for kind in ('generate', 'count'):
            with self.subTest(kind=kind):
                started = self.start()
                started.send(kind, prompt='hello', sampling={})
                self.expect_fault(started, f'{kind} came without a model')

    def test_a_second_load_ends_it(self) -> None:
        started = self.start_loaded()
        started.send('load', folder=self.folder, options={})
        self.expect_fault(started, 'load came while a model is loaded')

    def test_a_second_request_while_one_runs_ends_it(self) -> None:
        for kind in ('generate', 'unload', 'load'):
            with self.subTest(kind=kind):
                started = self.start_loaded()
                started.expect('started', started.generate('hello [hold]'))
                started.send(kind, prompt='hello', folder='/x', options={}, sampling={})
                self.expect_fault(started, f'{kind} came while a generate runs')

    def test_a_frame_that_is_no_message_ends_it_also_between_tokens(self) -> None:
        started = self.start()
        started.send_text(b'{"type":"ping"}')
        self.expect_fault(started, 'ping lacks id')
        started = self.start_loaded()
        started.expect('started', started.generate('hello [hold]'))
        started.send_text(b'nonsense')
        self.expect_fault(started, 'no JSON')


class FakeFaults(WorkerTest):
    """The faults that tests of the node ask the fake for."""

    def test_it_dies_where_it_is_told_to(self) -> None:
        for settings, prompt, tokens, status in (({'load': 'exit'}, None, 0, 7), ({}, '[die=exit]', 0, 7),
                                                 ({}, '[die=kill] [die_after=2]', 2, -9), ({}, '[die=exit] [die_after=5]', 5, 7)):
            with self.subTest(settings=settings, prompt=prompt):
                started = self.start(**settings)
                id = started.send('load', folder=self.folder, options={})
                if prompt is not None:
                    started.expect('loaded', id)
                    id = started.generate(prompt)
                    started.expect('started', id)
                    for _ in range(tokens):
                        started.expect('token', id)
                self.assertIsNone(started.receive())
                self.assertEqual(started.ended()[0], status)

    def test_it_ignores_a_cancel_when_told_to_and_is_deaf_when_told_to(self) -> None:
        started = self.start_loaded()
        id = started.generate('hello [ignore_cancel] [hold]')
        started.expect('started', id)
        started.send('cancel', id=id)
        started.expect('pong', started.send('ping'))
        self.control.expect('generating')
        self.control.order('release', request=id)
        self.assertEqual(list(started.tokens(id))[-1]['reason'], 'stop')
        id = started.generate('hello [deaf] [hold]')
        started.expect('started', id)
        ping = started.send('ping')
        self.control.expect('generating')
        self.control.order('release', request=id)
        started.expect('token', id)  # the ping came before, and nothing heard it
        started.expect('pong', ping)

    def test_it_misbehaves_as_told(self) -> None:
        started = self.start_loaded()
        started.generate('hello [send=out_of_turn] [send_after=1]')
        self.assertEqual([started.receive()['type'] for _ in range(3)], ['started', 'token', 'loaded'])  # type: ignore[index]


if __name__ == '__main__':
    unittest.main()
