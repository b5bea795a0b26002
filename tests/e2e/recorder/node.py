"""A node over a fake engine for the recorder: `werk serve` in a home of its own with one model, and what its engine was sent."""
import json
import os
import queue
import re
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

MODEL = 'small'
ENGINE_NAME = 'the-engines-own-name'


class Node:
    def __init__(self, build, replies):
        self.scratch = tempfile.TemporaryDirectory(prefix='werk-record-')
        folder = Path(self.scratch.name)
        self.received = queue.Queue()
        control = socket.socket(socket.AF_UNIX)
        control.bind(str(folder / 'control'))
        control.listen(16)
        threading.Thread(target=self._accept, args=(control,), daemon=True).start()
        caps = {'supports_tools': True, 'supports_tool_calls': True, 'supports_parallel_tool_calls': True}
        (folder / 'script').write_text(json.dumps({'replies': replies, 'props': {'chat_template_caps': caps}}))
        own = {name: value for name, value in os.environ.items() if not name.startswith(('WERK_', 'LLAMA_'))}
        environment = own | {'WERK_HOME': str(folder / 'home'), 'WERK_LLAMA_SERVER': str(build / 'tests/support/fake_llama_server'),
                             'FAKE_ENGINE_SCRIPT': str(folder / 'script'), 'FAKE_ENGINE_CONTROL': str(folder / 'control')}
        subprocess.run([build / 'tests/support/make_tiny_gguf', folder / 'model.gguf'], check=True)
        werk = build / 'werk'
        subprocess.run([werk, 'import', folder / 'model.gguf', '--name', MODEL], check=True, env=environment, stdout=subprocess.DEVNULL)
        self.process = subprocess.Popen([werk, 'serve', '--port', '0'], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            found = re.search(r' at http://127\.0\.0\.1:(\d+)', line)
            if found:
                self.port = int(found[1])
                break
        else:
            raise SystemExit('the node did not start')
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.scratch.cleanup()

    def _accept(self, control):
        while True:
            connection, _ = control.accept()
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection):
        for line in connection.makefile('rb'):
            event = json.loads(line)
            if event.get('event') == 'request' and event['target'].startswith('/v1/chat/completions'):
                self.received.put(event['body'])

    def engine_body(self):
        """What the engine was sent next, as the exchange files name its model."""
        body = self.received.get(timeout=30)
        name = json.loads(body)['model']
        return body.replace(json.dumps(name), json.dumps(ENGINE_NAME), 1)
