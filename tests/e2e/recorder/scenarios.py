"""What the recorder lets each client do, and which of its requests become files."""
import json
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent

SAYS = {'content': ['Done.']}
COMMAND = 'cat note.txt'
THOUGHT = 'I must look.'
SIGNATURE = 'd2Vyaw=='  # the node's own
CLAUDE = {'ANTHROPIC_BASE_URL': 'URL', 'ANTHROPIC_API_KEY': 'any', 'ANTHROPIC_MODEL': 'small', 'DISABLE_TELEMETRY': '1',
          'DISABLE_ERROR_REPORTING': '1', 'DISABLE_AUTOUPDATER': '1', 'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC': '1', 'CLAUDE_CODE_MAX_RETRIES': '2',
          'IS_SANDBOX': '1'}


def version_of(words):
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True).stdout.strip()


def calls(*named):
    """Of the engine: name and input of each."""
    return {'tool_calls': [{'id': f'call_{number}', 'name': name, 'arguments': [json.dumps(given)]} for number, (name, given) in enumerate(named, 1)]}


def claude_scenarios(claude, Scenario, contents):
    program = claude / 'claude'
    client = f'Claude Code {version_of([program, "--version"]).split()[0]}'
    planted = [*contents, COMMAND, THOUGHT, SIGNATURE, 'say hi', 'what now?', 'what does the note say?', 'missing.txt', 'Done.', 'Be brief.', 'rivers',
               'select:WebSearch', 'search', 'look', 'red.png', 'a.pdf']
    small = ['--system-prompt', 'Be brief.', '--tools', '']

    def claude_code(commands, files, replies=()):
        free = ['--dangerously-skip-permissions']
        return Scenario(client, [[program, '-p', *words, *free] for words in commands], files, list(replies), planted, variables=CLAUDE)

    return [
        claude_code([['say hi', *small], ['what now?', *small]], [
            ('claude-code-small-form', 'The smallest prompt that the client makes, without its own instructions and tools.', [0]),
            ('claude-code-attribution-line', 'Two conversations begin with lines of attribution that differ; the engine sees none of them, and the same '
                                             'system prompt twice.', [0, 1])], [SAYS, SAYS]),
        claude_code([['say hi']], [
            ('claude-code-first-turn', "A conversation's first turn: instructions, tools with one that is deferred, a system entry among the messages.",
             [0])], [SAYS]),
        claude_code([['what does the note say?']], [
            ('claude-code-tool-turn', 'A turn with a thought and two calls, one of which went wrong, and their results.', [1])],
            [{'reasoning': [THOUGHT]} | calls(('Bash', {'command': COMMAND}), ('Read', {'file_path': 'missing.txt'})), SAYS]),
        claude_code([['look']], [
            ('claude-code-unreadable-results', "An image and a document that a tool has read, of which this model can see neither.", [1])],
            [calls(('Read', {'file_path': 'red.png'}), ('Read', {'file_path': 'a.pdf'})), SAYS]),
        claude_code([['search']], [
            ('claude-code-deferred-tool', 'A deferred tool that was searched for is among the tools from then on; the result that names it is its name.', [1]),
            ('claude-code-server-tool', "The client's own search is a call with a tool of its maker's servers, which is dropped.", [2])],
            [calls(('ToolSearch', {'query': 'select:WebSearch'})), calls(('WebSearch', {'query': 'rivers'})), SAYS, SAYS]),
        claude_code([['say hi']], [
            ('claude-code-whole-after-an-error', 'After an error event the client asks once more, for a whole answer.', [1])],
            [{'die': {'after': 4, 'how': 'error'}}, SAYS]),
    ]


SDK_FILES = [('whole', 'A whole answer.'), ('stream', "The stream helper's request."), ('tools', 'Tools to choose from.'),
             ('tool-result', 'A call with its result.')]
MORE_FILES = {('anthropic', 'python'): [('count', 'Tokens to be counted.'), ('beta', 'A call of the beta kind.')],
              ('anthropic', 'js'): [('count', 'Tokens to be counted.')],
              ('openai', 'python'): [('schema', 'An answer in a given form.')]}


def sdk_scenarios(sdks, Scenario):
    python = sdks / 'bin/python'
    found = []
    for sdk, package, shown in (('anthropic', '@anthropic-ai/sdk', 'the Anthropic SDK'), ('openai', 'openai', 'the OpenAI SDK')):
        versions = {'python': version_of([python, '-c', f'import {sdk}; print({sdk}.__version__)']),
                    'js': json.loads((sdks / 'js/node_modules' / package / 'package.json').read_text())['version']}
        commands = {'python': [python, HERE / 'sdk_calls.py', sdk, 'URL'],
                    'js': [sdks / 'js/node', HERE / 'sdk_calls.mjs', sdk, 'URL', sdks / 'js']}
        for language, name in (('python', 'Python'), ('js', 'JavaScript')):
            kinds = SDK_FILES + MORE_FILES.get((sdk, language), [])
            files = [(f'{sdk}-{language}-{kind}', sentence, [index]) for index, (kind, sentence) in enumerate(kinds)]
            found.append(Scenario(f'{shown} for {name} {versions[language]}', [commands[language]], files,
                                  [SAYS, SAYS, calls(('weather', {'city': 'Bonn'})), SAYS, SAYS, SAYS], ours=True))
    return found


def all_of(claude, sdks, Scenario, contents):
    return claude_scenarios(claude, Scenario, contents) + sdk_scenarios(sdks, Scenario)
