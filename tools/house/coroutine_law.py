"""The coroutine law of g++ 12, which miscompiles what breaks it: temporaries are destroyed twice, silently.

An expression that contains co_await contains no `{` and no lambda; no co_await stands inside a ternary, initialises a range-for or is
part of a loop's condition (seen: a while whose body is one statement); a lambda that captures is never a coroutine, since its captures die before it does.
"""

_CO_WORDS = {'co_await', 'co_yield', 'co_return'}
_AWAIT_WORDS = {'co_await', 'co_yield'}


def violations(cpp):
    """(line, message) for each place that breaks the law."""
    found = []
    reported = set()
    for index, token in enumerate(cpp.tokens):
        if token.text in _AWAIT_WORDS:
            for line, message in _of_expression(cpp, index):
                if (line, message) not in reported:
                    reported.add((line, message))
                    found.append((line, message))
    found.extend(_of_capturing_lambdas(cpp))
    return sorted(found)


def _of_expression(cpp, await_at):
    word = cpp.text_at(await_at)
    lambda_starts = {found.first for found in cpp.lambdas}
    first, last, ternary, control = _full_expression(cpp, await_at)
    # What stands inside a lambda of the expression is part of another function; the lambda itself is reported.
    for index in range(first, last):
        text = cpp.text_at(index)
        if index in lambda_starts:
            yield cpp.token_line(index), f'a lambda in an expression with {word}: name it first'
            return
        if text == '{':
            yield cpp.token_line(index), f'"{{" in an expression with {word}: name that argument first'
            return
    if ternary:
        yield cpp.token_line(await_at), f'{word} in a ternary: use if and else'
    if control == 'range-for':
        yield cpp.token_line(await_at), f'{word} initialises a range-for: name the range first'
    elif control in ('while', 'for'):
        yield cpp.token_line(await_at), f'{word} in the condition of {control}: name its result first'


def _full_expression(cpp, await_at):
    """The token range [first, last) of the full expression, whether a ternary is on the way out, and the control word around it."""
    low, high = await_at, await_at + 1
    ternary = False
    while True:
        low, left_texts = _extend_left(cpp, low)
        high, right_texts = _extend_right(cpp, high)
        ternary = ternary or '?' in left_texts or '?' in right_texts
        opener = _bracket_around(cpp, await_at, low)
        if opener is None:
            return low, high, ternary, None
        if cpp.text_at(opener) == '{' and cpp.is_block(opener):
            return low, high, ternary, None
        if cpp.text_at(opener) == '(' and cpp.is_control_paren(opener):
            control = cpp.text_at(opener - 1)
            ranges = control == 'for' and ':' in left_texts and '?' not in left_texts
            return low, high, ternary, 'range-for' if ranges else control
        low, high = opener, cpp.match[opener] + 1


def _bracket_around(cpp, await_at, low):
    """The open bracket just outside of the range that begins at `low`, or None at the file's own level."""
    opener = cpp.enclosing[await_at]
    while opener is not None and opener >= low:
        opener = cpp.enclosing[opener]
    return opener


def _extend_left(cpp, low):
    """Moves `low` left to the start of the statement or just behind the enclosing bracket; also the words passed by."""
    passed = []
    while low > 0:
        text = cpp.text_at(low - 1)
        if text in (';', '(', '[', '{', 'else', 'do'):
            break
        if text in (')', ']', '}') and low - 1 in cpp.match:
            opener = cpp.match[low - 1]
            is_lambda = opener in cpp.lambda_bodies
            if text == '}' and not is_lambda and cpp.is_block(opener):
                break
            if text == ')' and cpp.is_control_paren(opener):
                break
            low = opener
            continue
        passed.append(text)
        low -= 1
    return low, passed


def _extend_right(cpp, high):
    """Moves `high` right to the statement's `;` or to the enclosing bracket's end; also the words passed by."""
    passed = []
    while high < len(cpp.tokens):
        text = cpp.text_at(high)
        if text in (';', ')', ']', '}'):
            break
        if text in ('(', '[', '{') and high in cpp.match:
            high = cpp.match[high] + 1
            continue
        passed.append(text)
        high += 1
    return high, passed


def _of_capturing_lambdas(cpp):
    for found in cpp.lambdas:
        if not found.captures:
            continue
        nested = [(other.first, other.body_close) for other in cpp.lambdas if found.body_open < other.first < found.body_close]
        for index in range(found.body_open, found.body_close):
            if cpp.text_at(index) in _CO_WORDS and not any(low <= index <= high for low, high in nested):
                yield cpp.token_line(found.first), 'a lambda that captures is a coroutine: pass what it needs as parameters'
                break
