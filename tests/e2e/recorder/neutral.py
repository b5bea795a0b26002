"""Takes what is a third party's or a person's out of a recorded request and leaves its shape. Every text becomes neutral words of the same
length (as `<repeat N TEXT>`, which exchange files expand), unless the recorder planted it; names that make up the shape (types, roles, tools, members
of schemas) stay; ids, paths and keys become fixed ones."""
import json
import re

# Members whose values are names of the dialect or of a client's tools, not prose.
NAMES = {'type', 'role', 'name', 'tool_use_id', 'tool_name', 'id', 'tool_call_id', 'effort', 'display', 'keep', 'media_type', 'ttl', 'scope', '$schema', 'format',
         'model', 'signature', 'tool_choice', 'stop_reason', 'detail', 'reasoning_effort', 'service_tier', 'strict', 'required', 'enum', 'const', '$ref',
         'propertyNames', 'additionalProperties', 'verbosity'}
NAME = re.compile(r'[\w.$/:#-]{1,64}')
TAG = re.compile(r'\s*(<(system-reminder|tool_use_error|command-\w+)>)\n?(.*?)\n?(</\2>)\s*', re.S)
ATTRIBUTION = re.compile(r'x-anthropic-billing-header:[\w .=;-]*')
UUID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
WORD = 'word '
HEADERS = ('anthropic-version', 'anthropic-beta', 'anthropic-dangerous-direct-browser-access', 'user-agent', 'x-app', 'accept', 'content-type',
           'x-claude-code-session-id', 'x-stainless-lang', 'x-stainless-retry-count', 'x-stainless-timeout', 'x-stainless-helper-method',
           'x-stainless-raw-response', 'x-stainless-helper', 'x-stainless-poll-helper')


class Neutral:
    def __init__(self, planted, folders):
        self.planted = set(planted)
        self.folders = folders
        self.known = {}

    def words(self, text):
        """Equal ones for equal texts, and different ones for different texts, so that a mix-up shows."""
        if text not in self.known:
            head = f'Text {len(self.known) + 1} '
            count = max(0, len(text) - len(head)) // len(WORD)
            self.known[text] = (head + WORD * count).rstrip() if count < 4 else f'{head}<repeat {count} {WORD}>.'
        return self.known[text]

    def text(self, text):
        for folder in self.folders:
            text = text.replace(folder, '/folder')
        if text in self.planted or not text.strip() or ATTRIBUTION.fullmatch(text):
            return text
        tagged = TAG.fullmatch(text)
        if tagged:
            return f'{tagged[1]}\n{self.words(tagged[3])}\n{tagged[4]}\n'
        return self.words(text)

    def user_id(self, text):
        """A JSON text in a string: its members stay, who they name goes."""
        try:
            members = json.loads(text)
        except ValueError:
            return self.text(text)
        return json.dumps({name: self.anonymous(value) for name, value in members.items()}, separators=(',', ':'))

    @staticmethod
    def anonymous(value):
        if not isinstance(value, str):
            return value
        return re.sub(r'[0-9a-f]', '0', value) if UUID.fullmatch(value) else '0' * len(value)

    def value(self, value, name=''):
        if isinstance(value, dict):
            return {key: self.value(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner, name) for inner in value]
        if not isinstance(value, str):
            return value
        if name == 'user_id':
            return self.user_id(value)
        if (name in NAMES and NAME.fullmatch(value)) or (name == 'pattern' and ' ' not in value):
            return value
        return self.text(value)

    def body(self, text):
        body = self.value(json.loads(text))
        if 'model' in body:
            body['model'] = 'small'
        return json.dumps(body, separators=(',', ':'), ensure_ascii=False)

    @staticmethod
    def headers(headers):
        kept = [(name, value) for name, value in headers if name.lower() in HEADERS]
        kept = [(name, UUID.sub('00000000-0000-0000-0000-000000000000', value)) for name, value in kept]
        for name, value in headers:
            if name.lower() == 'x-api-key':
                kept.append((name, 'any'))
            if name.lower() == 'authorization':
                kept.append((name, 'Bearer any'))
        return kept
