#!/usr/bin/env python3
"""stub_cuda.py FOLDER: lets the registry's torch load on a machine without NVIDIA's packages. FOLDER is its torch/lib.

That torch is linked against a dozen CUDA libraries (3.4 GB of packages), and the loader wants them there even where only the CPU
computes. This writes a small library in the place of each, in which every function says "no device". For the tests' rig alone: on
a machine with a GPU these must never take the real ones' places. Needs readelf and gcc.
"""
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict

CUDA_LIBRARY = re.compile(r'lib(?:cu|nv|nccl)\w*\.so')
CUDA_SYMBOL = re.compile(r'(?:__)?p?(?:cu|nv|nccl)[A-Za-z]')
NO_DEVICE = 100


def readelf(path, *options):
    return subprocess.run(['readelf', '-W', *options, path], check=True, capture_output=True, text=True).stdout


class Library:
    """What one of torch's libraries takes from others."""

    def __init__(self, path):
        self.wants = [name for name in re.findall(r'\(NEEDED\).*\[(.+)\]', readelf(path, '-d')) if CUDA_LIBRARY.match(name)]
        self.defined, self.undefined = set(), []
        for row in re.findall(r'^ *\d+: \S+ +\d+ \S+ +\S+ +\S+ +(\S+) (\S+)', readelf(path, '--dyn-syms'), re.MULTILINE):
            name, _, version = row[1].partition('@')
            if row[0] == 'UND':
                self.undefined.append((name, version.lstrip('@')))
            else:
                self.defined.add(name)
        # Which library each version is asked of.
        self.versions = {}
        for part in re.split(r'File: ', readelf(path, '-V'))[1:]:
            for version in re.findall(r'Name: (\S+) ', part):
                self.versions.setdefault(version, part.split()[0])


def collect(folder):
    """For each absent library the symbols that are asked of it, by their version ('' is none)."""
    libraries = [Library(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if '.so' in name]
    defined = set().union(*(library.defined for library in libraries))
    stubs = {name: defaultdict(set) for library in libraries for name in library.wants}
    for library in libraries:
        for version, owner in library.versions.items():
            if owner in stubs:
                stubs[owner][version]  # a version must exist even when only weak symbols carry it
        for symbol, version in library.undefined:
            if symbol in defined:
                continue
            if version:
                owner = library.versions.get(version)
                if owner in stubs:
                    stubs[owner][version].add(symbol)
            elif library.wants and CUDA_SYMBOL.match(symbol):
                # Without a version any of the libraries that come along will do.
                stubs[library.wants[0]][''].add(symbol)
    return stubs


def source(symbols):
    lines = []
    for symbol in sorted(symbols):
        if symbol.lower().endswith(('errorstring', 'errorname', 'error_string')):
            lines.append(f'const char *{symbol}(void) {{ return "no CUDA here"; }}')
        elif 'GetDeviceCount' in symbol:
            lines.append(f'int {symbol}(int *count) {{ *count = 0; return {NO_DEVICE}; }}')
        elif 'GetVersion' in symbol:
            lines.append(f'int {symbol}(int *version) {{ if (version) *version = 0; return 0; }}')
        else:
            lines.append(f'long {symbol}(void) {{ return {NO_DEVICE}; }}')
    return '\n'.join(lines) + '\n'


def build(folder, name, versions):
    with tempfile.TemporaryDirectory() as work:
        text, script = os.path.join(work, 'stub.c'), os.path.join(work, 'stub.map')
        with open(text, 'w', encoding='utf-8') as file:
            file.write(source(set().union(*versions.values())))
        named = {version: symbols for version, symbols in versions.items() if version}
        with open(script, 'w', encoding='utf-8') as file:
            for version, symbols in named.items():
                file.write(f'{version} {{ ' + ''.join(f'{symbol}; ' for symbol in sorted(symbols)) + '};\n')
        options = [f'-Wl,--version-script={script}'] if named else []
        subprocess.run(['gcc', '-shared', '-fPIC', '-w', '-fno-builtin', f'-Wl,-soname,{name}', *options, text, '-o',
                        os.path.join(folder, name)], check=True)


def main():
    folder = sys.argv[1]
    for name, versions in collect(folder).items():
        build(folder, name, versions)


if __name__ == '__main__':
    main()
