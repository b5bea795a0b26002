"""The workers' channel, messages and text, each by itself."""
from __future__ import annotations

import importlib.util
import json
import os
import socket
import struct
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, '..', '..', 'workers'))

import werk_worker as worker  # noqa: E402
from werk_worker import channel, messages  # noqa: E402
from werk_worker.failures import failure_of  # noqa: E402


def frame(text: bytes) -> bytes:
    return struct.pack('>I', len(text)) + text


class Frames(unittest.TestCase):
    def setUp(self) -> None:
        self.node, its = socket.socketpair()
        self.addCleanup(self.node.close)
        self.addCleanup(its.close)
        self.channel = worker.Channel(its, incoming_bytes_max=1000)

    def refused(self, data: bytes) -> str:
        self.node.sendall(data)
        with self.assertRaises(worker.Broken) as caught:
            self.channel.receive()
        return str(caught.exception)

    def test_a_frame_that_is_too_long_is_refused_before_its_text_comes(self) -> None:
        self.assertIn('1001 bytes', self.refused(struct.pack('>I', 1001)))

    def test_a_text_that_is_no_json_object_is_refused(self) -> None:
        for text in (b'', b'{', b'[]', b'7', b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":1}x', b'[' * 400 + b']' * 400):
            with self.subTest(text=text[:20]):
                self.refused(frame(text))

    def test_nesting_is_allowed_up_to_the_limit_and_refused_beyond(self) -> None:
        def nested(depth: int) -> bytes:
            return b'{"a":' + b'[' * (depth - 1) + b']' * (depth - 1) + b'}'
        self.assertIn('a', channel.parse(nested(channel.NESTING_MAX)))
        with self.assertRaisesRegex(worker.Broken, 'nested deeper'):
            channel.parse(nested(channel.NESTING_MAX + 1))

    def test_many_objects_side_by_side_are_not_deep(self) -> None:
        self.assertEqual(len(channel.parse(b'{"a":[' + b','.join([b'{}'] * 500) + b']}')['a']), 500)

    def test_frames_cut_anywhere_arrive_whole_and_in_order(self) -> None:
        sent = [{'type': 'ping', 'id': number, 'text': 'é' * number} for number in range(4)]
        data = b''.join(frame(json.dumps(message, ensure_ascii=False).encode()) for message in sent)
        got = []
        for at in range(len(data)):
            self.node.sendall(data[at:at + 1])
            message = self.channel.poll()
            if message is not None:
                got.append(message)
        self.assertEqual(got, sent)

    def test_polling_an_empty_inbox_does_not_wait(self) -> None:
        self.assertIsNone(self.channel.poll())

    def test_the_nodes_end_is_noticed_by_reading_and_by_writing(self) -> None:
        self.node.close()
        for call in (self.channel.poll, self.channel.receive, lambda: self.channel.send({'type': 'pong', 'id': 1})):
            with self.assertRaises(worker.Gone):
                call()

    def test_a_message_over_the_workers_own_limit_is_never_sent(self) -> None:
        with self.assertRaises(ValueError):
            self.channel.send({'type': 'token', 'id': 1, 'text': 'x' * channel.OUTGOING_BYTES_MAX})


class Messages(unittest.TestCase):
    def refused(self, **message: object) -> str:
        with self.assertRaises(worker.Broken) as caught:
            messages.read(message)
        return str(caught.exception)

    def test_what_is_missing_or_has_the_wrong_type_is_named(self) -> None:
        self.assertIn('no type', self.refused(id=1))
        self.assertIn("unknown type 'dance'", self.refused(type='dance', id=1))
        self.assertIn('ping lacks id', self.refused(type='ping'))
        self.assertIn('id of ping has the wrong type', self.refused(type='ping', id=True))
        self.assertIn('id of ping is negative', self.refused(type='ping', id=-1))
        self.assertIn('load lacks folder', self.refused(type='load', id=1))
        self.assertIn('threads of options', self.refused(type='load', id=1, folder='/x', options={'threads': '2'}))
        self.assertIn('either', self.refused(type='count', id=1))
        self.assertIn('either', self.refused(type='count', id=1, prompt='a', messages=[]))
        self.assertIn('no object', self.refused(type='count', id=1, messages=[7]))
        self.assertIn('temperature of sampling', self.refused(type='generate', id=1, prompt='a', sampling={'temperature': 'hot'}))

    def test_unknown_members_are_ignored_and_null_is_absent(self) -> None:
        read = messages.read({'type': 'generate', 'id': 3, 'prompt': 'a', 'messages': None, 'colour': 'red', 'max_tokens': None,
                              'sampling': {'temperature': 1, 'seed': None, 'mirostat': 2}})
        self.assertEqual(read, messages.Generate(3, worker.Prompt(text='a'), worker.Sampling(temperature=1.0), None))

    def test_sampling_that_no_engine_can_do_is_refused_with_the_range(self) -> None:
        self.assertIsNone(worker.Sampling(temperature=0.0, top_p=1.0, min_p=0.0).refused_because())
        self.assertIn('top_p is 1.5', worker.Sampling(top_p=1.5).refused_because() or '')
        self.assertIn('temperature is -1', worker.Sampling(temperature=-1.0).refused_because() or '')


class Text(unittest.TestCase):
    """A model whose tokens are bytes, which cuts characters everywhere."""

    @staticmethod
    def pieces(data: bytes) -> list[str]:
        text = worker.Detokenizer(lambda tokens: bytes(tokens).decode('utf-8', 'replace'))
        return [text.add(token) for token in data]

    def test_no_character_goes_out_before_it_is_whole_and_none_is_lost(self) -> None:
        said = 'Grüße, 世界 🌍! ' * 40
        pieces = self.pieces(said.encode())
        self.assertEqual(''.join(pieces), said)
        self.assertFalse(any('\ufffd' in piece for piece in pieces))
        self.assertEqual(self.pieces('é'.encode()), ['', 'é'])

    def test_an_unfinished_character_at_the_end_is_not_said(self) -> None:
        self.assertEqual(''.join(self.pieces('ab🌍'.encode()[:-1])), 'ab')

    def test_bytes_that_never_become_a_character_do_not_hold_up_the_rest(self) -> None:
        said = ''.join(self.pieces(b'a' + b'\xff' * 500 + b'b'))
        self.assertTrue(said.startswith('a') and said.endswith('b'))
        self.assertEqual(set(said[1:-1]), {'\ufffd'})

    def test_a_decoder_that_drops_the_first_space_keeps_the_others(self) -> None:
        text = worker.Detokenizer(lambda tokens: ''.join(f' w{token}' for token in tokens).lstrip(' '))
        self.assertEqual(''.join(text.add(token) for token in range(200)), ' '.join(f'w{number}' for number in range(200)))


class Failures(unittest.TestCase):
    def test_a_message_names_no_path_outside_the_models_folder(self) -> None:
        error = RuntimeError("can't open /srv/models/m/weights.bin, nor /opt/engine/lib/x.so: /srv/models/m is odd")
        failure = failure_of(error, 'model_unusable', '/srv/models/m')
        self.assertEqual(failure.code, 'model_unusable')
        self.assertEqual(str(failure), "RuntimeError: can't open weights.bin, nor x.so: the model's folder is odd")

    def test_memory_that_runs_out_is_told_apart(self) -> None:
        for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory"), RuntimeError('std::bad_alloc')):
            self.assertEqual(failure_of(error, 'internal').code, 'out_of_memory')

    def test_a_missing_or_malformed_file_of_a_folder_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, 'broken.json'), 'w', encoding='utf-8') as file:
                file.write('{"a":')
            for name, words in (('broken.json', "broken.json of the model's folder can't be read"),
                                ('config.json', 'lacks config.json: it is needed')):
                with self.assertRaisesRegex(worker.Failure, words):
                    worker.read_json(folder, name, 'it is needed')
            self.assertEqual(worker.read_json(folder, 'config.json'), {})
        with self.assertRaisesRegex(worker.Failure, "folder doesn't exist"):
            worker.read_json(folder, 'config.json', 'it is needed')


@unittest.skipUnless(importlib.util.find_spec('jinja2'), 'this Python has no jinja2')
class Templates(unittest.TestCase):
    CHAT = worker.Prompt(messages=[{'role': 'user', 'content': 'Hä?'}], tools=[{'name': '<f>'}], variables={'mood': 'calm'})

    def rendered(self, source: str) -> str:
        return worker.JinjaTemplate(source, tokens={'bos_token': '<s>'})(self.CHAT)

    def test_templates_see_messages_tools_tokens_and_the_callers_variables(self) -> None:
        self.assertEqual(self.rendered('{{ bos_token }}{% for m in messages %}\n{{ m.content }}{% endfor %}|{{ tools | tojson }}'
                                       '|{{ mood }}|{{ add_generation_prompt }}'), '<s>Hä?|[{"name": "<f>"}]|calm|True')

    def test_a_template_that_refuses_fails_is_malformed_or_reaches_out_is_told(self) -> None:
        for source, words in (('{{ raise_exception("no such role") }}', 'no such role'), ('{{ 1 / 0 }}', 'zero'),
                              ('{{ messages.append(1) }}', 'refuses'), ('{{ "".__class__.__mro__ }}', 'refuses')):
            with self.assertRaisesRegex(worker.Failure, words) as caught:
                self.rendered(source)
            self.assertEqual(caught.exception.code, 'invalid_request')
        with self.assertRaisesRegex(worker.Failure, 'malformed') as caught:
            self.rendered('{% for %}')
        self.assertEqual(caught.exception.code, 'model_unusable')

    def test_what_a_template_can_do_is_found_by_trying(self) -> None:
        able = worker.JinjaTemplate('{{ tools | tojson }}{% for m in messages %}{{ m.content }}{% endfor %}')
        strict = worker.JinjaTemplate('{% for m in messages %}{% if m.role == "system" and not loop.first %}{{ raise_exception("no") }}'
                                      '{% endif %}{{ m.content }}{% endfor %}')
        self.assertEqual(worker.capabilities(able), {'tools': True, 'later_system': True})
        self.assertEqual(worker.capabilities(strict), {'tools': False, 'later_system': False})
        self.assertEqual(worker.capabilities(None), {'tools': False, 'later_system': False})

    def test_a_folder_has_its_template_in_either_place(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(worker.JinjaTemplate.of_folder(folder))
            named = [{'name': 'default', 'template': 'plain'}, {'name': 'tool_use', 'template': 'with tools'}]
            with open(os.path.join(folder, 'tokenizer_config.json'), 'w', encoding='utf-8') as file:
                json.dump({'chat_template': named, 'eos_token': {'content': '</s>'}}, file)
            found = worker.JinjaTemplate.of_folder(folder)
            assert found is not None
            self.assertEqual(found(self.CHAT), 'with tools')
            self.assertEqual(found(worker.Prompt(messages=[])), 'plain')
            with open(os.path.join(folder, 'chat_template.jinja'), 'w', encoding='utf-8') as file:
                file.write('own {{ eos_token }}')
            found = worker.JinjaTemplate.of_folder(folder)
            assert found is not None
            self.assertEqual(found(self.CHAT), 'own </s>')


if __name__ == '__main__':
    unittest.main()
