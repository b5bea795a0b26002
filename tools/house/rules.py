"""The house rules. Each takes what it looks at and yields violations; tools/tidy runs them over the tree."""
import os
import re
import subprocess
from dataclasses import dataclass

from house import coroutine_law, tables
from house.cpp_text import CppText

_CPP = re.compile(r'(src|tests|bench|tools)/.*\.(cpp|hpp)$')
_BINARY = re.compile(r'\.(png|jpg|gguf|bin|gz|ico)$')
_RATCHET = 'tools/tidy_ratchet.txt'


@dataclass(frozen=True, order=True)
class Violation:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f'{self.path}:{self.line}: {self.message} [{self.rule}]'


class Tree:
    """The files of a checkout: what git tracks or would track, or everything outside build/ where there is no git."""

    def __init__(self, root, texts=None):
        self.root = root
        self.texts = texts if texts is not None else _read_tree(root)
        self.cpp = [CppText(path, text) for path, text in sorted(self.texts.items()) if _CPP.match(path)]


def _read_tree(root):
    texts = {}
    for path in _list_files(root):
        full = os.path.join(root, path)
        if _BINARY.search(path) or os.path.islink(full) or not os.path.isfile(full):
            continue
        with open(full, 'rb') as file:
            texts[path] = file.read().decode('utf-8', errors='replace')
    return texts


def _list_files(root):
    command = ['git', '-c', f'safe.directory={root}', '-C', root, 'ls-files', '-co', '--exclude-standard', '-z']
    try:
        listed = subprocess.run(command, capture_output=True, check=True).stdout
        return [os.fsdecode(name) for name in listed.split(b'\0') if name]
    except (OSError, subprocess.CalledProcessError):
        found = []
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in ('build', '.git', '__pycache__')]
            found.extend(os.path.relpath(os.path.join(folder, name), root) for name in names)
        return found


def is_header(path):
    return path.endswith('.hpp')


# --- the look of a file ---------------------------------------------------------------------------------------------------

def layout(tree):
    for cpp in tree.cpp:
        for number, line in enumerate(cpp.lines, 1):
            if len(line) > tables.COLUMNS_MAX:
                yield Violation(cpp.path, number, 'columns', f'{len(line)} columns; at most {tables.COLUMNS_MAX}')
    for path, text in tree.texts.items():
        lines = text.split('\n')
        makefile = os.path.basename(path) == 'Makefile'
        markdown = path.endswith('.md')
        verbatim = path == 'LICENSE' or path.endswith('.exchange') or '/corpus/' in path
        for number, line in enumerate(lines, 1):
            if verbatim:
                break
            if '\t' in line and not makefile:
                yield Violation(path, number, 'tabs', 'a tab; two spaces')
            if line != line.rstrip() and not markdown:
                yield Violation(path, number, 'trailing blanks', 'blanks at the end of the line')
        if text and not text.endswith('\n') and not verbatim:
            yield Violation(path, len(lines), 'final newline', 'no newline at the end of the file')


def headers(tree):
    for cpp in tree.cpp:
        if not is_header(cpp.path):
            continue
        if not re.search(r'^#pragma once$', cpp.code, re.MULTILINE):
            yield Violation(cpp.path, 1, 'pragma once', 'a header says #pragma once')
        opening = _opening_comment(cpp.lines)
        sentences = len(re.findall(r'[.!?](?=\s|$)', opening))
        if sentences < tables.HEADER_SENTENCES_MIN:
            yield Violation(cpp.path, 1, 'header comment',
                            f'a header opens with two to six sentences: what, whose, what it promises; here: {sentences}')


def _opening_comment(lines):
    words = []
    for line in lines:
        if not line.startswith('//'):
            break
        words.append(line[2:].strip())
    return ' '.join(words)


# --- sizes, with a ratchet ------------------------------------------------------------------------------------------------

def sizes(tree):
    """What is over a limit must stand in the ratchet file with exactly its size: it may only shrink, and then leave."""
    entries, faults = _read_ratchet(tree.texts.get(_RATCHET, ''))
    yield from faults
    over = {}
    for cpp in tree.cpp:
        limit = tables.HEADER_LINES_MAX if is_header(cpp.path) else tables.SOURCE_LINES_MAX
        lines = len(cpp.lines) - 1
        if lines > limit:
            over[(cpp.path, '-')] = (lines, 1, limit)
        for function in cpp.functions:
            if function.lines > tables.FUNCTION_LINES_MAX:
                over[(cpp.path, function.name)] = (function.lines, function.first_line, tables.FUNCTION_LINES_MAX)
    for (path, name), (lines, line, limit) in over.items():
        what = 'the file' if name == '-' else name
        allowed = entries.pop((path, name), None)
        if allowed is None:
            yield Violation(path, line, 'size', f'{what} has {lines} lines; at most {limit}')
        elif lines > allowed[0]:
            yield Violation(path, line, 'size', f'{what} grew from {allowed[0]} to {lines} lines; it may only shrink to {limit}')
        elif lines < allowed[0]:
            yield Violation(_RATCHET, allowed[1], 'ratchet', f'{path} {name} shrank: write {lines} instead of {allowed[0]}')
    for (path, name), (_, line) in entries.items():
        yield Violation(_RATCHET, line, 'ratchet', f'{path} {name} is within its limit or gone: remove this entry')


def _read_ratchet(text):
    entries, faults = {}, []
    for number, line in enumerate(text.split('\n'), 1):
        words = line.split()
        if not words or words[0].startswith('#'):
            continue
        if len(words) != 3 or not words[2].isdigit():
            faults.append(Violation(_RATCHET, number, 'ratchet', 'an entry is: path, function or -, lines'))
            continue
        entries[(words[0], words[1])] = (int(words[2]), number)
    return entries, faults


# --- words, includes, coroutines ------------------------------------------------------------------------------------------

def banned_words(tree):
    for cpp in tree.cpp:
        for ban in tables.BANS:
            if not any(tables.GROUPS[group].match(cpp.path) for group in ban.groups):
                continue
            if any(re.match(pattern, cpp.path) for pattern, _ in ban.allowed):
                continue
            for match in re.finditer(ban.pattern, cpp.code):
                line = cpp.line_of(match.start())
                if cpp.lines[line - 1].lstrip().startswith('#') or _is_operator_name(cpp.code, match.start()):
                    continue
                yield Violation(cpp.path, line, ban.name, f'{match.group(0).strip()}: instead {ban.instead}')


def _is_operator_name(code, offset):
    """`operator new` and `operator delete` declare, they do not allocate."""
    return re.search(r'\boperator\s*$', code[max(0, offset - 40):offset]) is not None


def banned_includes(tree):
    for ban in tables.INCLUDE_BANS:
        includers = []
        for cpp in tree.cpp:
            if re.match(ban.allowed, cpp.path):
                continue
            includers.extend((cpp.path, line, what) for line, _, what in cpp.includes if re.match(ban.pattern, what))
        files = sorted({path for path, _, _ in includers})
        if len(files) > ban.files_max:
            for path, line, what in includers:
                yield Violation(path, line, 'include', f'{what}: {ban.name} belongs to {ban.instead}')


def coroutines(tree):
    for cpp in tree.cpp:
        for line, message in coroutine_law.violations(cpp):
            yield Violation(cpp.path, line, 'coroutine law', message)


def python_sleeps(tree):
    for path, text in tree.texts.items():
        if path.startswith('tests/') and path.endswith('.py'):
            for number, line in enumerate(text.split('\n'), 1):
                if re.search(r'\btime\.sleep\s*\(', line.split('#')[0]):
                    yield Violation(path, number, 'sleep', 'time.sleep: wait for an event')


# --- the tree -------------------------------------------------------------------------------------------------------------

def names(tree):
    for path in tree.texts:
        for part in path.split('/'):
            if part.split('.')[0] in tables.FORBIDDEN_NAMES:
                yield Violation(path, 1, 'names', f'"{part}" says nothing about what is inside')
                break


def named_in_cmake(tree):
    """Every source file is built: a CMakeLists.txt of its folder or of one above names it."""
    cmake = {os.path.dirname(path): text for path, text in tree.texts.items() if os.path.basename(path) == 'CMakeLists.txt'}
    for cpp in tree.cpp:
        if is_header(cpp.path):
            continue
        folder = os.path.dirname(cpp.path)
        found = False
        while not found:
            name = os.path.relpath(cpp.path, folder or '.')
            found = folder in cmake and re.search(rf'(?<![\w./-])(?:\S*}}/)?{re.escape(name)}(?![\w.-])', cmake[folder]) is not None
            if not folder:
                break
            folder = os.path.dirname(folder)
        if not found:
            yield Violation(cpp.path, 1, 'unbuilt', 'no CMakeLists.txt of its folder or above names this file')


def documents(tree):
    for path, text in tree.texts.items():
        if tables.PRIVATE_TEXT_FILES.match(path):
            for match in tables.PRIVATE_TEXT.finditer(text):
                line = text.count('\n', 0, match.start()) + 1
                yield Violation(path, line, 'private text', f'"{match.group(0)}" belongs to one machine or registry')
        if path.endswith('.md'):
            yield from _markdown(tree, path, text)


def _markdown(tree, path, text):
    prose = re.sub(r'^```.*?^```', lambda match: re.sub(r'[^\n]', ' ', match.group(0)), text, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r'^# ', prose, re.MULTILINE)
    if len(titles) != 1:
        yield Violation(path, 1, 'title', f'{len(titles)} titles; a document has one')
    for match in re.finditer(r'\]\(([^)\s#]+)(?:#[^)]*)?\)', prose):
        target = match.group(1)
        if re.match(r'[a-z]+:', target):
            continue
        resolved = os.path.normpath(os.path.join(os.path.dirname(path), target))
        known = resolved in tree.texts or any(name.startswith(resolved + '/') for name in tree.texts)
        if not known:
            yield Violation(path, prose.count('\n', 0, match.start()) + 1, 'dead link', f'{target} does not exist')


RULES = (layout, headers, sizes, banned_words, banned_includes, coroutines, python_sleeps, names, named_in_cmake, documents)


def check(tree):
    found = set()
    for rule in RULES:
        found.update(rule(tree))
    return sorted(found)
