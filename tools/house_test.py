#!/usr/bin/env python3
"""The rules themselves, tested with planted violations: each must be found, and its innocent neighbour must not."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'tools'))

from house import coroutine_law, layers, rules  # noqa: E402
from house.cpp_text import CppText, blank  # noqa: E402

HEADER = '// What it is. What it promises.\n#pragma once\n'


def found(rule, texts):
    """The rule names that `rule` reports for these files."""
    return sorted({violation.rule for violation in rule(rules.Tree(None, texts))})


def law_lines(body):
    return [line for line, _ in coroutine_law.violations(CppText('src/werk/x.cpp', body))]


class Text(unittest.TestCase):
    def test_comments_and_literals_are_blanked_and_places_stay(self):
        source = 'a /* new */ "new \\" new" \'"\' // new\nR"x(new )" new)x" 1\'000\'000 b'
        code = blank(source)
        self.assertEqual(len(code), len(source))
        self.assertNotIn('new', code)
        self.assertEqual(code.index('b'), source.rindex('b'))
        self.assertIn("1'000'000", code)

    def test_an_include_inside_a_comment_or_a_raw_string_is_none(self):
        cpp = CppText('x.cpp', '// #include "a.hpp"\nR"(\n#include "b.hpp"\n)"\n  # include <c.hpp>\n')
        self.assertEqual(cpp.includes, [(5, '<', 'c.hpp')])

    def test_lambdas_are_told_from_subscripts_bindings_and_attributes(self):
        source = '''[[nodiscard]] int f() {
          auto [a, b] = g(); auto& [c] = h(); int x[3]; x[a] = y()[b]; delete[] p;
          call([] { one(); }, [&x, this](int) mutable -> std::pair<int, int> { two(); });
          return [=] {}; }'''
        self.assertEqual([each.captures for each in CppText('x.cpp', source).lambdas], [False, True, True])

    def test_functions_are_measured_and_named(self):
        source = '''namespace werk {
struct Plain { int x{0}; std::function<void()> f = [] {}; };
template <class T, class U>
Result<T> Thing<T>::do_it(U value)
{
  if (value) {
  }
}
class Other final : public Base<int> {
 public:
  Other(int a) : a_{a}, b_(a) {
  }
  bool operator()(int) const { return true; }
};
TEST(Thing, does_it) {
}
}
'''
        functions = [(each.name, each.lines) for each in CppText('x.cpp', source).functions]
        self.assertEqual(functions, [('f', 1), ('do_it', 6), ('Other', 2), ('operator', 1), ('Thing.does_it', 2)])

    def test_a_constructor_with_braced_members_is_one_function(self):
        source = 'A::A(int x)\n    : a_{x},\n      b_{std::vector<int>{1}} {\n  run();\n}\n'
        self.assertEqual([each.lines for each in CppText('x.cpp', source).functions], [5])


class CoroutineLaw(unittest.TestCase):
    def breaks(self, statement):
        lines = law_lines('awaitable<void> f() {\n' + statement + '\n}\n')
        self.assertNotEqual(lines, [], statement)

    def keeps(self, statement):
        self.assertEqual(law_lines('awaitable<void> f() {\n' + statement + '\n}\n'), [], statement)

    def test_a_braced_argument_is_found(self):
        self.breaks('co_await send(Message{1});')
        self.breaks('auto x = co_await send({1, 2});')
        self.breaks('Error e{co_await x()};')
        self.breaks('co_return Pair{co_await x(), 1};')
        self.breaks('if (co_await send(Message{1})) { go(); }')
        self.breaks('use(Options{.a = 1}, co_await x());')
        self.breaks('co_yield Thing{1};')

    def test_a_lambda_is_found(self):
        self.breaks('co_await run([] { return 1; });')
        self.breaks('use(co_await x(), [&](int i) -> bool { return i; });')

    def test_a_ternary_is_found_at_every_level(self):
        self.breaks('auto x = ok ? co_await a() : b;')
        self.breaks('auto x = (co_await a()) ? b : c;')
        self.breaks('use(ok ? wrap(co_await a()) : b);')

    def test_a_range_for_initialiser_is_found(self):
        self.breaks('for (auto& x : co_await list()) use(x);')
        self.breaks('for (int i = 0; auto& x : co_await list()) use(x);')

    def test_a_loop_condition_is_found(self):
        self.breaks('while (co_await next()) use(1);')
        self.breaks('do { use(1); } while (co_await next());')
        self.breaks('for (int i = 0; co_await next(); ++i) use(i);')

    def test_a_capturing_coroutine_is_found(self):
        self.breaks('auto g = [this]() -> awaitable<void> { co_await x(); };')
        self.breaks('auto g = [&]() -> awaitable<int> { co_return 1; };')

    def test_what_the_law_allows_is_left_alone(self):
        self.keeps('Message m{1}; auto x = co_await send(m); auto& [a, b] = x;')
        self.keeps('if (auto r = co_await get(); !r) { co_return fail(Error{1}); }')
        self.keeps('while (true) { if (co_await next()) { use(Thing{1}); } else { stop({}); } }')
        self.keeps('group.spawn([](Node& node) -> awaitable<void> { co_await node.run(); }(node));')
        self.keeps('auto g = [&x] { group.spawn([](X& y) -> awaitable<void> { co_await y.run(); }(x)); };')
        self.keeps('for (int i = 0; i < n; ++i) co_await step(i);')
        self.keeps('if (x == Thing{1}) co_await step(); else co_await other();')
        self.keeps('switch (co_await kind()) { case Kind::a: co_await x(); break; }')
        self.keeps('/* co_await f({}); */ log("co_await f({})");')
        self.keeps('co_await pick(ok ? a : b);')
        self.keeps('auto& x = table[co_await index()];')


class HouseRules(unittest.TestCase):
    def test_layout(self):
        self.assertEqual(found(rules.layout, {'src/a.cpp': 'x' * 101 + '\n'}), ['columns'])
        self.assertEqual(found(rules.layout, {'src/a.cpp': 'x' * 100 + '\n'}), [])
        self.assertEqual(found(rules.layout, {'src/a.cpp': '\tx\n', 'Makefile': 'a:\n\tb\n'}), ['tabs'])
        self.assertEqual(found(rules.layout, {'cmake/A.cmake': 'x \n'}), ['trailing blanks'])
        self.assertEqual(found(rules.layout, {'src/a.cpp': 'x'}), ['final newline'])

    def test_headers(self):
        self.assertEqual(found(rules.headers, {'src/a.hpp': HEADER}), [])
        self.assertEqual(found(rules.headers, {'src/a.hpp': '// What it is. Promises.\n'}), ['pragma once'])
        self.assertEqual(found(rules.headers, {'src/a.hpp': '// Only one.\n#pragma once\n'}), ['header comment'])
        self.assertEqual(found(rules.headers, {'src/a.hpp': '#pragma once\n// A. B.\n'}), ['header comment'])

    def test_sizes_and_their_ratchet(self):
        def function_of(lines):
            return 'void f() {\n' + 'x();\n' * (lines - 2) + '}\n'

        def with_ratchet(lines, entry):
            return found(rules.sizes, {'src/a.cpp': function_of(lines), 'tools/tidy_ratchet.txt': entry})

        self.assertEqual(with_ratchet(70, ''), [])
        self.assertEqual(with_ratchet(71, ''), ['size'])
        self.assertEqual(with_ratchet(90, 'src/a.cpp f 90\n'), [])
        self.assertEqual(with_ratchet(91, 'src/a.cpp f 90\n'), ['size'])
        self.assertEqual(with_ratchet(89, 'src/a.cpp f 90\n'), ['ratchet'])
        self.assertEqual(with_ratchet(60, 'src/a.cpp f 90\n'), ['ratchet'])
        self.assertEqual(with_ratchet(60, 'nonsense\n'), ['ratchet'])
        self.assertEqual(found(rules.sizes, {'src/a.cpp': '\n' * 501}), ['size'])
        self.assertEqual(found(rules.sizes, {'src/a.cpp': '\n' * 500}), [])
        self.assertEqual(found(rules.sizes, {'src/a.hpp': '\n' * 251}), ['size'])
        self.assertEqual(found(rules.sizes, {'src/a.hpp': '\n' * 251, 'tools/tidy_ratchet.txt': 'src/a.hpp - 251\n'}), [])

    def banned(self, code, path='src/werk/gateway/a.cpp'):
        return found(rules.banned_words, {path: code + '\n'})

    def test_every_banned_word_is_found_outside_its_place_only(self):
        for rule, code, allowed_path in (
                ('threads', 'std::mutex m;', 'src/werk/async/a.cpp'),
                ('threads', 'std::atomic<int> a;', 'src/werk/telemetry/a.cpp'),
                ('threads', 'std::jthread t;', 'src/werk/gateway/a_test.cpp'),
                ('threads', 'std::condition_variable c;', 'src/werk/base/log.cpp'),
                ('using namespace', 'using namespace std;', None),
                ('endl', 'out << std::endl;', None),
                ('co_spawn', 'asio::co_spawn(a, b);', 'src/werk/async/a.cpp'),
                ('detached', 'asio::detached', 'src/werk/async/a.cpp'),
                ('awaitable operators', 'using awaitable_operators::operator||;', 'src/werk/async/a.cpp'),
                ('sleep', 'std::this_thread::sleep_for(x);', None),
                ('sleep', 'sleep(1);', None),
                ('sleep', '::sleep(1);', None),
                ('sleep', 'usleep(1);', None),
                ('new', 'auto* x = new Thing;', None),
                ('delete', 'delete x;', None),
                ('delete', 'delete[] x;', None),
                ('catch', 'try {} catch (...) {}', 'src/werk/http/session.cpp'),
                ('throw', 'throw 1;', 'src/werk/async/a.cpp'),
                ('printing', 'std::printf("x");', 'src/werk/app/a.cpp'),
                ('printing', 'std::cerr << 1;', 'src/werk/base/assert.cpp'),
                ('forking', '::fork();', 'src/werk/process/a.cpp')):
            self.assertEqual(self.banned(code), [rule], code)
            if allowed_path:
                self.assertEqual(self.banned(code, allowed_path), [], code)

    def test_innocent_words_are_left_alone(self):
        for code in ('A(const A&) = delete;', 'A() =delete;', 'using namespace std::chrono_literals;', '// new and delete',
                     'log("using namespace x; catch (");', '#include <new>', 'void* operator new(size_t);',
                     'int renew = new_id();', 'co_await async::sleep_for(clock, executor, 1s, stop);', 'clock.sleep(1);',
                     'std::this_thread::get_id();', 'snprintf(a, b, c);', 'static_assert(std::is_nothrow_v<T>);'):
            self.assertEqual(self.banned(code), [], code)

    def test_banned_includes(self):
        def of(path, what):
            return found(rules.banned_includes, {path: f'#include <{what}>\n'})

        self.assertEqual(of('src/werk/gateway/a.cpp', 'boost/beast/http.hpp'), ['include'])
        self.assertEqual(of('src/werk/http/a.cpp', 'boost/beast/http.hpp'), [])
        self.assertEqual(of('src/werk/gateway/a.cpp', 'mutex'), ['include'])
        self.assertEqual(of('src/werk/gateway/a.cpp', 'spdlog/spdlog.h'), ['include'])
        self.assertEqual(of('src/werk/app/top/layout.cpp', 'curses.h'), ['include'])
        self.assertEqual(of('src/werk/app/top/terminal_screen.cpp', 'curses.h'), [])
        self.assertEqual(of('src/werk/app/node.cpp', 'curl/curl.h'), ['include'])
        self.assertEqual(of('src/werk/app/hub_fetch.cpp', 'curl/curl.h'), [])
        self.assertEqual(of('src/werk/app/a.cpp', 'CLI/CLI.hpp'), [])
        twice = {'src/werk/app/a.cpp': '#include <CLI/CLI.hpp>\n', 'src/werk/app/b.cpp': '#include <CLI/App.hpp>\n'}
        self.assertEqual(found(rules.banned_includes, twice), ['include'])

    def test_coroutine_law_is_among_the_rules(self):
        self.assertEqual(found(rules.coroutines, {'src/a.cpp': 'void f() { co_await g({}); }\n'}), ['coroutine law'])

    def test_python_tests_do_not_sleep(self):
        self.assertEqual(found(rules.python_sleeps, {'tests/e2e/a.py': 'time.sleep(1)\n'}), ['sleep'])
        self.assertEqual(found(rules.python_sleeps, {'tests/e2e/a.py': '# time.sleep(1)\n'}), [])

    def test_names(self):
        self.assertEqual(found(rules.names, {'src/werk/utils/a.cpp': ''}), ['names'])
        self.assertEqual(found(rules.names, {'src/werk/base/helpers.hpp': ''}), ['names'])
        self.assertEqual(found(rules.names, {'src/werk/base/common_prefix.hpp': ''}), [])

    def test_every_source_is_built(self):
        cmake = 'src/werk/app/CMakeLists.txt'
        self.assertEqual(found(rules.named_in_cmake, {'src/werk/app/a.cpp': '', cmake: 'SOURCES aa.cpp\n'}), ['unbuilt'])
        self.assertEqual(found(rules.named_in_cmake, {'src/werk/app/a.cpp': '', cmake: 'SOURCES a.cpp\n'}), [])
        self.assertEqual(found(rules.named_in_cmake, {'src/werk/app/c/a.cpp': '', cmake: 'SOURCES c/a.cpp\n'}), [])
        self.assertEqual(found(rules.named_in_cmake, {'src/werk/app/c/a.cpp': '', cmake: 'SOURCES a.cpp\n'}), ['unbuilt'])
        self.assertEqual(found(rules.named_in_cmake, {'src/werk/a.cpp': ''}), ['unbuilt'])

    def test_documents(self):
        def of(text, path='docs/a.md'):
            return found(rules.documents, {path: text, 'docs/b.md': '# B\n', 'docs/adr/1.md': '# C\n'})

        self.assertEqual(of('# A\n[b](b.md) [c](adr/) [d](https://example.com) [e](#f)\n'), [])
        self.assertEqual(of('# A\n```\n# a comment in shell\n```\n'), [])
        self.assertEqual(of('# A\n[b](c.md)\n'), ['dead link'])
        self.assertEqual(of('A\n'), ['title'])
        self.assertEqual(of('# A\n/home/' + 'someone/x\n'), ['private text'])
        self.assertEqual(of('# A\npypi' + '.org\n'), ['private text'])
        self.assertEqual(of('// see /root/' + 'x\n', 'src/a.cpp'), ['private text'])

    def test_a_rule_that_is_forgotten_is_noticed(self):
        self.assertEqual(len(rules.RULES), 10)


class Layers(unittest.TestCase):
    LAW = ('base:\nasync: base\nhttp: base async\nengine: base async\nengine/*: base async engine http\n'
           'gateway: base async engine http\napp: *\n\npure base\npure http/sse\n')

    def of(self, **extra):
        texts = {
            'tools/layers.txt': self.LAW,
            'src/werk/base/text.hpp': '',
            'src/werk/async/loop.hpp': '#include <boost/asio/io_context.hpp>\n',
            'src/werk/http/sse.hpp': '#include "werk/base/text.hpp"\n',
            'src/werk/http/server.hpp': '#include "werk/async/loop.hpp"\n',
            'src/werk/engine/engine.hpp': '',
            'src/werk/engine/vllm/vllm.hpp': '#include "werk/engine/engine.hpp"\n#include "werk/http/server.hpp"\n',
            'src/werk/gateway/CMakeLists.txt': 'werk_module(gateway\n  SOURCES a.cpp\n  DEPENDS base async engine http\n)\n',
        }
        texts.update({path.replace('__', '/').replace('_hpp', '.hpp').replace('_cpp', '.cpp').replace('_txt', '.txt'): text
                      for path, text in extra.items()})
        return [str(violation) for violation in layers.check(rules.Tree(None, texts))]

    def test_a_lawful_tree_has_no_violation(self):
        self.assertEqual(self.of(), [])
        self.assertEqual(self.of(src__werk__gateway__a_cpp='#include "werk/engine/engine.hpp"\n'), [])
        self.assertEqual(self.of(src__werk__app__a_cpp='#include "werk/engine/vllm/vllm.hpp"\n'), [])

    def breaks(self, what, **extra):
        messages = self.of(**extra)
        self.assertTrue(any(what in message for message in messages), messages)

    def test_an_include_outside_the_row_is_found(self):
        self.breaks('base may not include', src__werk__base__a_cpp='#include "werk/http/server.hpp"\n')
        self.breaks('gateway may not include', src__werk__gateway__a_cpp='#include "werk/engine/vllm/vllm.hpp"\n')
        self.breaks('engine may not include', src__werk__engine__a_cpp='#include "werk/engine/vllm/vllm.hpp"\n')
        self.breaks('engine/candle may not include', src__werk__engine__candle__a_cpp='#include "werk/engine/vllm/vllm.hpp"\n')

    def test_paths_are_whole_and_exist(self):
        self.breaks('write the whole path', src__werk__gateway__a_cpp='#include "sse.hpp"\n')
        self.breaks('does not exist', src__werk__gateway__a_cpp='#include "werk/http/nothing.hpp"\n')
        self.breaks('no module', src__werk__a_cpp='')
        self.breaks('no module', src__werk__unknown__a_cpp='')
        self.breaks('comes first', src__werk__http__sse_cpp='#include "werk/base/text.hpp"\n#include "werk/http/sse.hpp"\n')
        self.breaks('does not include tests', src__werk__gateway__a_cpp='#include "tests/support/x.hpp"\n')

    def test_cmake_rows_are_checked(self):
        self.breaks('may not depend on', src__werk__base__CMakeLists_txt='werk_module(base DEPENDS async)')
        self.breaks('modules are named in DEPENDS', src__werk__base__CMakeLists_txt='werk_module(base LINK werk_async)')
        self.breaks('may not depend on engine_vllm', src__werk__gateway__CMakeLists_txt='werk_module(gateway DEPENDS engine_vllm)')
        self.breaks('does not name base', src__werk__http__CMakeLists_txt='werk_module(http DEPENDS async)')
        self.breaks('the target of this folder', src__werk__engine__vllm__CMakeLists_txt='werk_module(vllm DEPENDS base)')

    def test_pure_files_reach_nothing_impure_even_through_others(self):
        self.breaks('[pure]', src__werk__base__a_hpp='#include <boost/asio/post.hpp>\n')
        self.breaks('werk/http/server.hpp', src__werk__http__sse_hpp='#include "werk/http/server.hpp"\n')
        through = self.LAW + 'pure gateway/rules\n'
        self.breaks('werk/engine/mid.hpp -> boost/asio/post.hpp', tools__layers_txt=through,
                    src__werk__engine__mid_hpp='#include <boost/asio/post.hpp>\n',
                    src__werk__gateway__rules_hpp='#include "werk/engine/mid.hpp"\n')

    def test_the_law_itself_is_checked(self):
        self.breaks('not a row', tools__layers_txt=self.LAW + 'gateway base\n')
        self.breaks('unknown module', tools__layers_txt=self.LAW + 'routing: nothing\n')
        self.breaks('may include each other', tools__layers_txt=self.LAW.replace('base:\n', 'base: async\n'))
        owned = self.LAW.replace('engine/*:', 'engine/owned: base engine\nengine/*: engine/owned')
        self.assertFalse(any('may include each other' in each for each in self.of(tools__layers_txt=owned)))
        self.breaks('may include each other', tools__layers_txt=owned.replace('base engine\n', 'base engine/*\n'))


if __name__ == '__main__':
    unittest.main()
