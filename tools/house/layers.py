"""The include law: tools/layers.txt against every #include and against the DEPENDS row of each module's CMakeLists.txt."""
import os
import re
from dataclasses import dataclass, field

from house.rules import Violation

LAW = 'tools/layers.txt'
_ROOT = 'src/werk/'
_IMPURE_MODULES = ('async', 'http', 'process')
_IMPURE_HEADERS = re.compile(r'boost/(?:asio|beast)')


def is_test_file(path):
    return re.search(r'_(?:test\w*|fixture)\.[ch]pp$', path) is not None


@dataclass
class Law:
    rows: dict = field(default_factory=dict)     # module or 'engine/*' -> names it may include
    pure: list = field(default_factory=list)     # modules and file stems
    faults: list = field(default_factory=list)

    def module_of(self, path):
        """The module of a path below src/werk/ ('http/sse.hpp'), or None."""
        parts = path.split('/')
        if len(parts) > 2 and f'{parts[0]}/*' in self.rows:
            return f'{parts[0]}/{parts[1]}'
        return parts[0] if len(parts) > 1 and parts[0] in self.rows else None

    def row_of(self, module):
        if module in self.rows:
            return self.rows[module]
        return self.rows.get(f'{module.split("/")[0]}/*', ())

    def allows(self, module, other):
        row = self.row_of(module)
        return module == other or '*' in row or other in row

    def is_pure(self, path):
        stem = path.rsplit('.', 1)[0]
        return any(stem == name or path.startswith(name + '/') for name in self.pure)


def read_law(text):
    law = Law()
    for number, line in enumerate(text.split('\n'), 1):
        line = line.split('#')[0].strip()
        if not line:
            continue
        row = re.fullmatch(r'([\w/*]+):\s*((?:[\w/*]+\s*)*)', line)
        pure = re.fullmatch(r'pure\s+([\w/]+)', line)
        if row:
            law.rows[row.group(1)] = tuple(row.group(2).split())
        elif pure:
            law.pure.append(pure.group(1))
        else:
            law.faults.append(Violation(LAW, number, 'layers', f'not a row and not a pure line: "{line}"'))
    for module, row in law.rows.items():
        for other in row:
            if other != '*' and other not in law.rows:
                law.faults.append(Violation(LAW, 1, 'layers', f'the row of {module} names an unknown module: {other}'))
            elif other != '*' and _back_name(module, other) in law.rows.get(other, ()):
                law.faults.append(Violation(LAW, 1, 'layers', f'{module} and {other} may include each other'))
    return law


def _back_name(module, other):
    """What `other` must not name, since `module` names it: the whole family, or within a family the module itself."""
    family = module.split('/')[0]
    return module if other.split('/')[0] == family and '/' in other else family


def check(tree):
    law = read_law(tree.texts.get(LAW, ''))
    found = list(law.faults)
    if not law.rows:
        found.append(Violation(LAW, 1, 'layers', 'no rows'))
    depends = _read_depends(tree, law, found)
    for cpp in tree.cpp:
        if cpp.path.startswith(_ROOT):
            found.extend(_check_file(cpp, law, depends, tree))
    found.extend(_check_pure(tree, law))
    return sorted(set(found))


def _check_file(cpp, law, depends, tree):
    path = cpp.path[len(_ROOT):]
    is_test = is_test_file(path)
    module = law.module_of(path)
    if module is None:
        yield Violation(cpp.path, 1, 'layers', 'belongs to no module of the law')
        return
    own = path.rsplit('.', 1)[0] + '.hpp'
    if path.endswith('.cpp') and _ROOT + own in tree.texts and cpp.includes and cpp.includes[0][2] != f'werk/{own}':
        yield Violation(cpp.path, cpp.includes[0][0], 'own header first', f'"werk/{own}" comes first')
    for line, quote, what in cpp.includes:
        if what.startswith('tests/'):
            if not is_test:
                yield Violation(cpp.path, line, 'layers', f'{what}: the product does not include tests')
            continue
        if not what.startswith('werk/'):
            if quote == '"':
                yield Violation(cpp.path, line, 'layers', f'{what}: write the whole path, "werk/<module>/x.hpp"')
            continue
        if _ROOT + what[len('werk/'):] not in tree.texts:
            yield Violation(cpp.path, line, 'layers', f'{what} does not exist')
            continue
        other = law.module_of(what[len('werk/'):])
        if other is None or not law.allows(module, other):
            yield Violation(cpp.path, line, 'layers', f'{module} may not include {what}')
        elif other != module and module in depends and other not in depends[module]:
            yield Violation(cpp.path, line, 'layers', f'{what}: {module} does not name {other} in its DEPENDS')


def _read_depends(tree, law, found):
    """Module -> modules of its DEPENDS; also reports rows that CMake breaks."""
    targets = {path.replace('/', '_'): path for path in _modules(tree, law)}
    depends = {}
    for path, text in sorted(tree.texts.items()):
        if not path.startswith(_ROOT) or os.path.basename(path) != 'CMakeLists.txt':
            continue
        module = law.module_of(path[len(_ROOT):])
        if module is None:
            continue
        text = re.sub(r'#[^\n]*', '', text)
        for call in re.finditer(r'werk_module\(\s*(\w+)([^)]*)\)', text):
            line = text.count('\n', 0, call.start()) + 1
            own = module.replace('/', '_')
            # A module may keep a part in a library of its own ("app_fetch"): its row is the module's.
            if call.group(1) != own and not call.group(1).startswith(own + '_'):
                found.append(Violation(path, line, 'layers', f'the target of this folder is {own}'))
            section = re.search(r'\bDEPENDS\b(.*?)(?=\b(?:SOURCES|LINK|TESTS)\b|\Z)', call.group(2), re.DOTALL)
            names = section.group(1).split() if section else []
            depends.setdefault(module, set()).update(targets.get(name, name) for name in names)
            for name in names:
                if not law.allows(module, targets.get(name, name)):
                    found.append(Violation(path, line, 'layers', f'{module} may not depend on {name}'))
            linked = re.search(r'\bLINK\b(.*?)(?=\b(?:SOURCES|DEPENDS|TESTS)\b|\Z)', call.group(2), re.DOTALL)
            for name in linked.group(1).split() if linked else []:
                if name.startswith('werk_') and not name.startswith(f'werk_{own}_'):
                    found.append(Violation(path, line, 'layers', f'{name}: modules are named in DEPENDS'))
    return depends


def _modules(tree, law):
    known = {name for name in law.rows if '*' not in name}
    for path in tree.texts:
        if path.startswith(_ROOT):
            module = law.module_of(path[len(_ROOT):])
            if module:
                known.add(module)
    return known


def _check_pure(tree, law):
    """A pure file reaches neither Asio nor Beast nor an impure module, not even through other headers."""
    files = {cpp.path[len(_ROOT):]: cpp for cpp in tree.cpp if cpp.path.startswith(_ROOT)}
    for path, cpp in files.items():
        if not law.is_pure(path) or is_test_file(path):
            continue
        for line, _, what in cpp.includes:
            way = _way_to_impure(what, files, law, set())
            if way:
                yield Violation(cpp.path, line, 'pure', f'pure files reach no Asio, Beast, async, http or process: {" -> ".join(way)}')


def _way_to_impure(what, files, law, seen):
    if _IMPURE_HEADERS.match(what):
        return [what]
    if not what.startswith('werk/') or what in seen:
        return None
    seen.add(what)
    path = what[len('werk/'):]
    if law.module_of(path) in _IMPURE_MODULES and not law.is_pure(path):
        return [what]
    if path not in files:
        return None
    for _, _, inner in files[path].includes:
        way = _way_to_impure(inner, files, law, seen)
        if way:
            return [what] + way
    return None
