#!/usr/bin/env python3
"""Tokens a second through Werk / the same worker program driven without it, with 1 and 4 callers, for each prepared engine.

Prints a figure a line, as the other benchmarks do; `bench/run workers` makes the page. WERK_TEST_WORKERS names the folder that
tests/workers/prepare has made, BENCH_WERK the program. Both sides are alive all the time and take turns (A B B A ...), so each meets
the same machine; greedy, one thread each, streamed. Without Werk four callers are four generations one after the other.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'workers'))
from worker_process import WorkerProcess  # noqa: E402

PREPARED = os.environ.get('WERK_TEST_WORKERS', '')
QUICK = bool(os.environ.get('BENCH_QUICK'))
PAIRS = 2 if QUICK else 7
MESSAGES = [{'role': 'user', 'content': 'Tell me about the rivers of Europe.'}]
# engine: model folder, worker program, tokens of an answer
ENGINES = {'onnx-genai': ('smollm2-onnx', 'onnx_genai_worker.py', 64), 'transformers': ('smollm2-hf', 'transformers_worker.py', 16)}
ONE_THREAD = {'OMP_NUM_THREADS': '1', 'OMP_WAIT_POLICY': 'passive', 'HF_HUB_OFFLINE': '1', 'TRANSFORMERS_OFFLINE': '1'}


def python_of(engine):
    return os.path.join(PREPARED, engine, 'bin', 'python')


class Direct:
    """The worker alone."""

    def __init__(self, engine):
        folder, program, self.tokens = ENGINES[engine]
        self.worker = WorkerProcess(python_of(engine), os.path.join(ROOT, 'workers', program), environment=ONE_THREAD,
                                    log=subprocess.DEVNULL, watchdog_seconds=300)
        self.worker.receive()
        self.worker.send('load', folder=os.path.join(PREPARED, folder), options={'threads': 1})
        while self.worker.receive()['type'] != 'loaded':
            pass

    def rate(self, callers):
        began, tokens = time.monotonic(), 0
        for _ in range(callers):
            self.worker.send('generate', messages=MESSAGES, sampling={'temperature': 0}, max_tokens=self.tokens)
            while (message := self.worker.receive())['type'] != 'finished':
                pass
            tokens += message['completion_tokens']
        return tokens / (time.monotonic() - began)

    def end(self):
        self.worker.__exit__()


class ThroughWerk:
    """The node with the same worker program behind it."""

    def __init__(self, engine, home):
        self.engine, self.tokens = engine, ENGINES[engine][2]
        environment = dict(os.environ, WERK_HOME=home, WERK_ONNX_GENAI_PYTHON=python_of('onnx-genai'),
                           WERK_TRANSFORMERS_PYTHON=python_of('transformers'))
        werk = os.environ['BENCH_WERK']
        subprocess.run([werk, 'import', os.path.join(PREPARED, ENGINES[engine][0]), '--name', engine, '--link'], env=environment,
                       check=True, stdout=subprocess.DEVNULL)
        self.node = subprocess.Popen([werk, 'serve', '--port', '0', '--backend', engine, '--threads', '1', '--model', engine],
                                     env=environment, stderr=subprocess.PIPE, text=True)
        for line in self.node.stderr:
            if ' serves ' in line:
                self.url = line.split()[-1]
                break
        threading.Thread(target=self.node.stderr.read, daemon=True).start()
        self.ask()

    def ask(self):
        body = {'model': self.engine, 'messages': MESSAGES, 'temperature': 0, 'max_tokens': self.tokens, 'stream': True,
                'stream_options': {'include_usage': True}}
        request = urllib.request.Request(self.url + '/v1/chat/completions', json.dumps(body).encode(),
                                         {'Content-Type': 'application/json'})
        tokens = 0
        with urllib.request.urlopen(request) as answer:
            for line in answer:
                if b'"usage"' in line:
                    tokens = json.loads(line[len(b'data: '):])['usage']['completion_tokens']
        return tokens

    def rate(self, callers):
        tokens = [0] * callers

        def call(index):
            tokens[index] = self.ask()
        threads = [threading.Thread(target=call, args=(index,)) for index in range(callers)]
        began = time.monotonic()
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return sum(tokens) / (time.monotonic() - began)

    def end(self):
        self.node.terminate()
        self.node.wait()


def measure(engine):
    home = tempfile.mkdtemp(prefix='werk-bench-')
    sides = [ThroughWerk(engine, home), Direct(engine)]
    try:
        for callers in (1, 4):
            ratios, direct_rates, werk_rates = [], [], []
            for pair in range(PAIRS + 1):
                order = sides if pair % 2 == 0 else sides[::-1]
                rates = {type(side): side.rate(callers) for side in order}
                if pair == 0:
                    continue  # warm-up
                ratios.append(rates[ThroughWerk] / rates[Direct])
                werk_rates.append(rates[ThroughWerk])
                direct_rates.append(rates[Direct])
            note = f'direct {statistics.median(direct_rates):.1f} tokens/s, Werk {statistics.median(werk_rates):.1f}'
            print(json.dumps({'goal': 'workers', 'name': f'tokens/s, Werk / direct: {engine}, {callers} caller(s)', 'unit': '',
                              'median': statistics.median(ratios), 'low': min(ratios), 'high': max(ratios), 'pairs': len(ratios),
                              'dropped': 0, 'better': 'higher', 'bar': 0.97, 'moonshot': 0.0, 'pairs_wanted': 7, 'note': note}),
                  flush=True)
    finally:
        for side in sides:
            side.end()
        shutil.rmtree(home)


def main():
    prepared = [engine for engine in ENGINES if os.path.exists(python_of(engine))]
    if not prepared:
        print('bench_workers: WERK_TEST_WORKERS names no prepared folder (tests/workers/prepare makes one)', file=sys.stderr)
        return 1
    for engine in prepared:
        measure(engine)
    return 0


if __name__ == '__main__':
    sys.exit(main())
