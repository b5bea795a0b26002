"""What the rules forbid, with what to write instead, and every exception with its reason. All of them stand here, in the open."""
import re
from dataclasses import dataclass

COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
SOURCE_LINES_MAX = 500
HEADER_LINES_MAX = 250
HEADER_SENTENCES_MIN = 2

FORBIDDEN_NAMES = ('utils', 'util', 'common', 'helpers', 'helper', 'manager', 'misc')

# Groups of files by path; a rule names the groups it applies to.
GROUPS = {
    'product': re.compile(r'src/(?!.*_test\w*\.[ch]pp$)'),
    'tests': re.compile(r'tests/|src/.*_test\w*\.[ch]pp$'),
    'bench': re.compile(r'bench/'),
    'all': re.compile(r'(src|tests|bench|tools)/'),
}


@dataclass(frozen=True)
class Ban:
    """A pattern that C++ code (comments and literals removed) must not hold."""
    name: str
    pattern: str
    instead: str
    groups: tuple = ('all',)
    # (path pattern, reason): where it is allowed all the same.
    allowed: tuple = ()


_THREADS = (r'\bstd\s*::\s*(?:mutex|shared_mutex|recursive_mutex|timed_mutex|atomic\w*|thread|jthread|condition_variable\w*'
            r'|lock_guard|scoped_lock|unique_lock|shared_lock|call_once|once_flag|counting_semaphore|binary_semaphore|latch'
            r'|barrier|future|promise|async)\b|\bthread_pool\b')

BANS = (
    Ban('threads', _THREADS, 'stay on the loop; blocking work goes through async::offload',
        groups=('product',),
        allowed=((r'src/werk/async/', 'the one place where threads meet the loop'),
                 (r'src/werk/base/log\.', 'callable from any thread'),
                 (r'src/werk/telemetry/', 'counters'),
                 (r'src/werk/engine/llama_cpp/', 'the library decodes on a thread of its own'))),
    Ban('using namespace', r'\busing\s+namespace\s+(?!(?:\w+\s*::\s*)*\w*literals\b)', 'name what you use (literals excepted)'),
    Ban('endl', r'\bstd\s*::\s*endl\b', "'\\n'"),
    Ban('co_spawn', r'\bco_spawn\b', 'async::TaskGroup::spawn, so that the task has an owner',
        allowed=((r'src/werk/async/', 'where TaskGroup lives'),
                 (r'tests/support/', 'the test loop drives one coroutine to its end'))),
    Ban('detached', r'\bdetached\b', 'async::TaskGroup::spawn, so that the task has an owner',
        allowed=((r'src/werk/async/', 'where TaskGroup lives'),)),
    Ban('awaitable operators', r'\bawaitable_operators\b', 'the waits of async',
        allowed=((r'src/werk/async/', 'where those waits live'),)),
    Ban('sleep', r'\bthis_thread\s*::\s*(?:sleep\w*|yield)\b|\busleep\b|\bnanosleep\b|(?<![\w.>:])sleep\s*\(|(?<!\w)::\s*sleep\s*\(',
        'wait for an event; time is an async::Clock'),
    Ban('new', r'\bnew\b', 'std::make_unique'),
    Ban('delete', r'(?<!=)(?<!= )\bdelete\b', 'std::unique_ptr'),
    Ban('catch', r'\bcatch\s*\(', 'return Result<T>; library exceptions stop at the session boundary',
        groups=('product',),
        allowed=((r'src/werk/async/', 'what a task throws ends here'),
                 (r'src/werk/http/(?:server|session)\w*\.', 'the session boundary'),
                 (r'src/werk/app/|src/main\.cpp$', 'the command line and settings libraries throw'))),
    Ban('throw', r'\bthrow\b', 'return Result<T>', groups=('product',),
        allowed=((r'src/werk/async/', 'passes on what a task threw'),)),
    Ban('printing', r'\b(?:printf|fprintf|vfprintf|vprintf|puts|fputs)\s*\(|\bstd\s*::\s*(?:cout|cerr|clog|print|println)\b'
        r'|\bfmt\s*::\s*print(?:ln)?\b', 'werk::log', groups=('product',),
        allowed=((r'src/werk/app/|src/main\.cpp$', 'commands speak to the terminal'),
                 (r'src/werk/base/(?:assert|log)\.', 'the log itself, and what speaks when it cannot'))),
    Ban('forking', r'\b(?:fork|vfork|posix_spawnp?|popen|system)\s*\(', 'process: it registers and reaps every child',
        groups=('product',),
        allowed=((r'src/werk/process/', 'children live here'),)),
)


@dataclass(frozen=True)
class IncludeBan:
    """A header that only some files may include, or at most so many files."""
    name: str
    pattern: str
    instead: str
    allowed: str = r'(?!)'
    files_max: int = 0


INCLUDE_BANS = (
    IncludeBan('Beast', r'boost/beast', 'http/ (each including file costs 16 s)', allowed=r'src/werk/http/'),
    IncludeBan('CLI11', r'CLI/', 'one source file of app', files_max=1),
    IncludeBan('toml++', r'toml\+\+/|toml\.hpp', 'one source file of app', files_max=1),
    IncludeBan('libcurl', r'curl/', 'werk/app/hub_fetch.hpp or node_client.hpp: commands only',
               allowed=r'src/werk/app/(?:hub_fetch|node_client)\.cpp$'),
    IncludeBan('ncurses', r'(?:n?cursesw?/)?n?curses\.h$', 'werk/app/top/terminal_screen.hpp',
               allowed=r'src/werk/app/top/terminal_screen\.cpp$'),
    IncludeBan('spdlog', r'spdlog/', 'werk/base/log.hpp', allowed=r'src/werk/base/log\.cpp$'),
    IncludeBan('prometheus', r'prometheus/', 'telemetry', allowed=r'src/werk/telemetry/'),
    IncludeBan('awaitable operators', r'boost/asio/experimental/awaitable_operators', 'the waits of async',
               allowed=r'src/werk/async/'),
    IncludeBan('thread headers', r'(?:mutex|shared_mutex|atomic|thread|condition_variable|future|semaphore|latch|barrier)$',
               'async::offload',
               allowed=r'src/werk/(?:async/|base/log\.|telemetry/|engine/llama_cpp/)|tests/|bench/|src/.*_test\w*\.[ch]pp$'),
)

# Documents and messages speak of the project alone: no home of a person, no folder of one machine, no package registry's host.
PRIVATE_TEXT = re.compile(r'(?<![\w.~-])/(?:home/\w+|root/|work/|Users/\w+)'
                          r'|\b(?:registry|pypi|files|deb|proxy)\.(?:npmjs|org|pythonhosted|debian|golang)\b')
PRIVATE_TEXT_FILES = re.compile(r'.*\.md$|Makefile$|cmake/|src/(?!.*_test\w*\.[ch]pp$)')
