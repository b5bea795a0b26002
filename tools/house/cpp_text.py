"""C++ text as the rules see it: comments and literals blanked, tokens, matching brackets, functions, lambdas.

Not a parser: it knows just enough grammar to tell a block from a braced list, a lambda from a subscript and a function body
from a class body. Where it must guess it guesses so that a rule reports too much rather than too little.
"""
import bisect
import functools
import re
from dataclasses import dataclass

_LEXEMES = re.compile(
    r'(?P<raw>(?<!\w)(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)")'
    r'|(?P<block>/\*.*?(?:\*/|\Z))'
    r'|(?P<line>//(?:\\\n|[^\n])*)'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r'|(?P<number>(?<!\w)\.?\d(?:\'(?=\w)|[eEpP][+-]|[\w.])*)'
    r"|(?P<char>'(?:\\.|[^'\\\n])+')",
    re.DOTALL)
_TOKENS = re.compile(r'[A-Za-z_]\w*|\.?\d(?:\'(?=\w)|[\w.])*|"[^"]*"|\'[^\']*\'|::|->|&&|\|\||<=>|[^\s\w]')
_DIRECTIVE = re.compile(r'^[ \t]*#(?:\\\n|[^\n])*', re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_PAIRS = {'(': ')', '[': ']', '{': '}'}
_CLOSERS = {')': '(', ']': '[', '}': '{'}
_CONTROL = {'if', 'while', 'for', 'switch', 'catch'}
# Words that may stand before a lambda's `[`; after any other word a `[` is a subscript or an array's bound.
_BEFORE_LAMBDA = {'return', 'co_return', 'co_await', 'co_yield', 'case', 'else', 'do', 'throw', 'and', 'or', 'not'}


def _blanked(text):
    """Spaces for every character but newlines."""
    return re.sub(r'[^\n]', ' ', text)


def blank(text):
    """The text with comments gone and literals emptied; every other character keeps its place."""

    def replace(match):
        found = match.group(0)
        if match.lastgroup == 'number':
            return found
        if match.group('block') is not None or match.group('line') is not None:
            return _blanked(found)
        quote = "'" if match.group('char') is not None else '"'
        return quote + _blanked(found[1:-1]) + quote

    return _LEXEMES.sub(replace, text)


@dataclass(frozen=True)
class Token:
    text: str
    offset: int


@dataclass(frozen=True)
class Lambda:
    first: int       # index of its `[`
    captures: bool
    body_open: int   # index of its `{`
    body_close: int


@dataclass(frozen=True)
class Function:
    name: str
    first_line: int
    last_line: int

    @property
    def lines(self):
        return self.last_line - self.first_line + 1


class CppText:
    """One C++ file. Lines and columns count from one; token indices from zero."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.lines = text.split('\n')
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def line_of(self, offset):
        return bisect.bisect_right(self._starts, offset)

    @functools.cached_property
    def code(self):
        return blank(self.text)

    @functools.cached_property
    def includes(self):
        """(line, '<' or '"', what) of every real #include."""
        found = []
        for match in _INCLUDE.finditer(self.text):
            hash_at = self.text.index('#', match.start())
            if self.code[hash_at] == '#':
                found.append((self.line_of(hash_at), match.group(1), match.group(2)))
        return found

    @functools.cached_property
    def tokens(self):
        """Tokens of the code without preprocessor lines."""
        code = _DIRECTIVE.sub(lambda match: _blanked(match.group(0)), self.code)
        return [Token(match.group(0), match.start()) for match in _TOKENS.finditer(code)]

    def token_line(self, index):
        return self.line_of(self.tokens[index].offset)

    def text_at(self, index):
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ''

    @functools.cached_property
    def match(self):
        """Index of the partner of every bracket that has one."""
        partner, stack = {}, []
        for index, token in enumerate(self.tokens):
            if token.text in _PAIRS:
                stack.append(index)
            elif token.text in _CLOSERS:
                # Branches of #if may leave a bracket over: drop what can't match.
                while stack and self.tokens[stack[-1]].text != _CLOSERS[token.text]:
                    stack.pop()
                if stack:
                    opener = stack.pop()
                    partner[opener], partner[index] = index, opener
        return partner

    @functools.cached_property
    def lambdas(self):
        found = []
        for index, token in enumerate(self.tokens):
            if token.text == '[' and self._opens_lambda(index):
                body = self._lambda_body(index)
                if body is not None:
                    captures = self.match[index] > index + 1
                    found.append(Lambda(index, captures, body, self.match[body]))
        return found

    def _opens_lambda(self, index):
        if index not in self.match:
            return False
        before, after = self.text_at(index - 1), self.text_at(index + 1)
        if after == '[' or before == '[' and self.text_at(index - 2) in ('', ';', '{', '}', '(', ',', ')'):
            return False  # an attribute: [[...]]
        if before in (')', ']', 'auto', 'operator') or before[:1] in ('"', "'"):
            return False
        if before in ('&', '&&') and self.text_at(index - 2) == 'auto':
            return False  # a structured binding
        if before == 'delete':
            return False
        return not re.match(r'\w', before) or before in _BEFORE_LAMBDA

    def _lambda_body(self, index):
        """Index of the `{` of a lambda that begins at `index`, or None if it has none after all."""
        at, angle = self.match[index] + 1, 0
        while at < len(self.tokens):
            text = self.tokens[at].text
            if text == '{' and angle <= 0:
                return at if at in self.match else None
            if text == '<':
                angle += 1
            elif text == '>':
                angle -= 1
            elif text in ('(', '[', '{'):
                at = self.match.get(at, at)
            elif text in (';', ')', ']', '}', '=') or (text == ',' and angle <= 0):
                return None
            at += 1
        return None

    @functools.cached_property
    def lambda_bodies(self):
        """Indices of the `{` of every lambda."""
        return {found.body_open for found in self.lambdas}

    @functools.lru_cache(maxsize=None)
    def is_block(self, opener):
        """Whether the `{` at `opener` holds statements, rather than the values of a braced list."""
        if opener in self.lambda_bodies:
            return True
        if self.text_at(opener - 1) in (')', 'else', 'do', 'try', ';', ':', 'const', 'noexcept', 'override', 'final',
                                        'mutable', ''):
            return True
        at, closer = opener + 1, self.match.get(opener, len(self.tokens))
        while at < closer:
            if self.tokens[at].text == ';':
                return True
            at = self.match.get(at, at) + 1 if self.tokens[at].text in _PAIRS else at + 1
        # Without a `;` of its own: a block of nothing but compound statements.
        last = closer - 1
        return self.text_at(last) == '}' and last in self.match and self.is_block(self.match[last])

    def is_control_paren(self, opener):
        """Whether the `(` at `opener` belongs to if, while, for, switch or catch."""
        before = self.text_at(opener - 1)
        return before in _CONTROL or before == 'constexpr' and self.text_at(opener - 2) == 'if'

    @functools.cached_property
    def enclosing(self):
        """For every token the index of the innermost open bracket around it, or None."""
        around, stack = [], []
        for index in range(len(self.tokens)):
            if self.match.get(index, index) < index and stack:
                stack.pop()
            around.append(stack[-1] if stack else None)
            if self.match.get(index, -1) > index:
                stack.append(index)
        return around

    @functools.cached_property
    def functions(self):
        """Function bodies at file, namespace and class level, with the lines from their first word to the closing brace."""
        found = []
        self._scan_scope(0, len(self.tokens), found)
        return found

    def _scan_scope(self, at, end, found):
        statement = at
        while at < end:
            text = self.tokens[at].text
            if text in (';', '}') or text == ':' and self.text_at(at - 1) in ('public', 'private', 'protected'):
                statement = at + 1
            elif text == '{' and at in self.match:
                closer = self.match[at]
                kind = self._kind_of_brace(statement, at)
                if kind == 'scope':
                    self._scan_scope(at + 1, closer, found)
                if kind == 'function':
                    found.append(Function(self._name_of(statement, at), self.token_line(statement), self.token_line(closer)))
                at = closer
                if kind != 'value':
                    statement = at + 1
            elif text in ('(', '['):
                at = self.match.get(at, at)
            at += 1

    def _kind_of_brace(self, statement, brace):
        """'scope' (namespace, class), 'function' or 'value' (an initialiser)."""
        head = self._head(statement, brace)
        texts = [self.tokens[index].text for index in head]
        if 'namespace' in texts or texts[:1] == ['extern'] and '(' not in texts:
            return 'scope'
        if '(' not in texts:
            return 'scope' if {'class', 'struct', 'union'} & set(texts) and 'enum' not in texts else 'value'
        if '=' in texts and 'operator' not in texts and '[' not in texts:
            return 'value'
        if self._in_initialiser_list(texts) and re.match(r'[\w>]', texts[-1]) and texts[-1] not in ('try', 'noexcept'):
            return 'value'
        return 'function'

    def _head(self, statement, brace):
        """The statement's tokens before the brace, without template<...> prefixes and without what brackets hold."""
        kept, at = [], statement
        while at < brace:
            if self.tokens[at].text == 'template' and self.text_at(at + 1) == '<':
                depth, at = 0, at + 1
                while at < brace:
                    depth += {'<': 1, '>': -1}.get(self.tokens[at].text, 0)
                    if depth == 0:
                        break
                    at += 1
            else:
                kept.append(at)
                if self.tokens[at].text in _PAIRS:
                    at = self.match.get(at, at)
                    kept.append(at)
            at += 1
        return kept

    @staticmethod
    def _in_initialiser_list(texts):
        seen_parameters = False
        for text in texts:
            seen_parameters = seen_parameters or text == ')'
            if text == ':' and seen_parameters:
                return True
        return False

    def _name_of(self, statement, brace):
        head = self._head(statement, brace)
        texts = [self.tokens[index].text for index in head]
        if '=' in texts and '[' in texts:
            return texts[texts.index('=') - 1]  # a lambda with a name
        for place, index in enumerate(head):
            if self.tokens[index].text != '(' or place == 0:
                continue
            name = self.text_at(index - 1)
            if name.startswith('TEST'):
                inside = self.tokens[index + 1:self.match[index]]
                return '.'.join(token.text for token in inside if token.text != ',')
            at = index - 2
            while self.text_at(at) in ('::', '~'):
                qualified = self.text_at(at) == '::' and re.match(r'\w', self.text_at(at - 1)) is not None
                name = (self.text_at(at - 1) if qualified else '') + self.text_at(at) + name
                at -= 2 if qualified else 1
            return name.removeprefix('::')
        return 'function'
