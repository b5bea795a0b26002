#!/usr/bin/env python3
"""tools/setup with a made-up dpkg-query, apt-get, id and sudo in front of the real ones: what it asks for and what it says."""
import os
import subprocess
import tempfile
import unittest

TOOLS = os.path.dirname(os.path.abspath(__file__))

# The made-up machine: `installed` lists packages one a line; apt-get writes down its words and installs what it is told.
FAKES = {
    'dpkg-query': '''shift 3
status=0
for package in "$@"; do
  if grep -qx "$package" "$MACHINE/installed"; then printf '<%s installed>' "$package"; else status=1; fi
done
exit $status''',
    'apt-get': '''echo "$@" >> "$MACHINE/calls"
for word in "$@"; do [ "$word" = "${BROKEN:-}" ] && exit 100; done
case "$*" in *" install "*) for word in "$@"; do echo "$word" >> "$MACHINE/installed"; done ;; esac
exit 0''',
    'id': 'echo "${FAKE_ID:-0}"',
    'sudo': 'if [ -n "${PASSWORD_NEEDED:-}" ]; then exit 1; fi; [ "$1" = -n ] && shift; echo sudo >> "$MACHINE/calls"; exec "$@"',
}


class Setup(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.bin = os.path.join(self.folder.name, 'bin')
        os.mkdir(self.bin)
        for name, body in FAKES.items():
            self.fake(name, body)
        self.write('installed', '')
        self.write('calls', '')

    def fake(self, name, body):
        path = os.path.join(self.bin, name)
        with open(path, 'w') as file:
            file.write(f'#!/bin/bash\n{body}\n')
        os.chmod(path, 0o755)

    def write(self, name, text):
        with open(os.path.join(self.folder.name, name), 'w') as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.folder.name, name)) as file:
            return file.read()

    def run_setup(self, *words, **environment):
        variables = {'PATH': f'{self.bin}:{os.environ["PATH"]}', 'MACHINE': self.folder.name, **environment}
        return subprocess.run([os.path.join(TOOLS, 'setup'), *words], env=variables, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)

    def test_the_second_run_installs_nothing_and_asks_nobody(self):
        first = self.run_setup()
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn('libboost1.81-dev', self.read('installed'))
        self.write('calls', '')
        second = self.run_setup(FAKE_ID='1000')
        self.assertEqual((second.returncode, second.stdout, second.stderr, self.read('calls')), (0, '', '', ''))

    def test_only_what_is_missing_is_installed(self):
        self.run_setup()
        installed = self.read('installed').replace('libssl-dev\n', '')
        self.write('installed', installed)
        self.write('calls', '')
        self.assertEqual(self.run_setup().returncode, 0)
        install = self.read('calls').strip().split('\n')[-1]
        self.assertTrue(install.endswith('--no-install-recommends --no-remove libssl-dev'), install)

    def test_tests_and_fuzzers_bring_their_own_packages(self):
        self.assertEqual(self.run_setup('test', 'fuzz').returncode, 0)
        self.assertIn('curl\n', self.read('installed'))
        self.assertIn('clang-14\n', self.read('installed'))
        self.assertIn('nginx-light\n', self.read('installed'))
        self.assertNotIn('clang-format', self.read('installed'))

    def test_without_root_it_uses_sudo_or_names_what_is_missing(self):
        self.assertEqual(self.run_setup(FAKE_ID='1000').returncode, 0)
        self.assertIn('sudo\n', self.read('calls'))
        self.write('installed', '')
        refused = self.run_setup(FAKE_ID='1000', PASSWORD_NEEDED='1')
        self.assertEqual(refused.returncode, 1)
        self.assertIn('apt-get install --no-install-recommends g++ cmake', refused.stderr)

    def test_a_failed_installation_names_what_is_missing(self):
        failed = self.run_setup(BROKEN='install')
        self.assertEqual(failed.returncode, 1)
        self.assertIn('missing: g++ cmake', failed.stderr)

    def test_stale_package_lists_are_no_reason_to_stop(self):
        self.assertEqual(self.run_setup(BROKEN='update').returncode, 0)

    def test_a_package_that_is_missing_after_all_is_an_error(self):
        self.fake('apt-get', 'exit 0')
        refused = self.run_setup()
        self.assertEqual(refused.returncode, 1)
        self.assertIn('still not installed', refused.stderr)

    def test_an_unknown_word_is_an_error(self):
        refused = self.run_setup('tets')
        self.assertEqual(refused.returncode, 2)
        self.assertIn("unknown word 'tets'", refused.stderr)

    def test_skip_leaves_everything_alone(self):
        self.assertEqual(self.run_setup(WERK_SETUP='skip').returncode, 0)
        self.assertEqual(self.read('calls'), '')


if __name__ == '__main__':
    unittest.main()
