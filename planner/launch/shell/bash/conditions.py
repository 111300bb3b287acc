"""Conditions of bash: `test`, `[ ... ]` and `[[ ... ]]`."""

import re
from collections.abc import Callable, Sequence

from tree_sitter import Node

from planner.launch.shell.bash.arithmetic import computed
from planner.launch.shell.bash.parse import text_of
from planner.launch.shell.bash.patterns import escaped, fits, is_extended, pythonic
from planner.launch.shell.bash.state import Array, Shell
from planner.launch.shell.bash.words import expression_of, fields, pattern, single
from planner.launch.shell.values import PART, known, plain

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_NO_POSIX = re.compile(r"(?<!\\)(?:\\\\)*\\[a-zA-Z0-9]|\(\?|[*+?}][*+?]")
_EQUAL = ("=", "==", "!=")
_TWO = (*_EQUAL, "=~", "<", ">", "\\<", "\\>", *_NUMBERS, "-nt", "-ot", "-ef")
_SIGNS = frozenset({"&&", "||", "!", "(", ")", *_TWO, "-a", "-o"})


def holds(node: Node, shell: Shell) -> bool:
    """Tell if `[ ... ]` or `[[ ... ]]` holds; chooses where the files do not say.

    Returns:
        True where it holds. [-]
    """
    opening = node.children[0].type
    leaves = [leaf for child in node.children[1:-1] for leaf in _leaves(child)]
    if opening == "((":
        shell.refuse(text_of(node), "is a condition that is not followed")
    if opening == "[":
        return test([w for leaf in leaves for w in fields([leaf], shell)], shell)
    return _Double(leaves, shell).whole()


def _leaves(node: Node) -> list[Node]:
    """Words and signs of a condition, in their order."""
    inner = ("unary_expression", "binary_expression", "parenthesized_expression")
    if node.type in (*inner, "ternary_expression"):
        return [leaf for child in node.children for leaf in _leaves(child)]
    return [node]


def test(words: Sequence[str], shell: Shell) -> bool:
    """Tell if a condition of words holds, as `test` judges it by their number.

    Returns:
        True where it holds. [-]
    """
    for sign in ("-o", "-a"):
        if sign in words[1:-1] and len(words) > 3:
            at = len(words) - 1 - list(reversed(words)).index(sign)
            if 0 < at < len(words) - 1:
                one, two = test(words[:at], shell), test(words[at + 1 :], shell)
                return one or two if sign == "-o" else one and two
    if words and words[0] == "!" and len(words) > 1:
        return not test(words[1:], shell)
    if len(words) == 3 and words[1] in _TWO:
        left, sign, right = words
        return _pair(left, sign, escaped(right) if known(right) else right, shell)
    if len(words) > 2 and words[0] == "(" and words[-1] == ")":
        return test(words[1:-1], shell)
    if len(words) == 2:
        return _alone(words[0], words[1], shell)
    # With more words bash says "too many arguments", and none are false.
    return len(words) == 1 and _alone("-n", words[0], shell)


class _Double:
    """Reads `[[ ... ]]` from left to right.

    Attributes:
        asleep: True in a part that does not decide, and is not asked for. [-]
    """

    def __init__(self, leaves: Sequence[Node], shell: Shell) -> None:
        self.leaves, self.shell = leaves, shell
        self.at, self.asleep = 0, False

    def _sign(self) -> str:
        return text_of(self.leaves[self.at]) if self.at < len(self.leaves) else ""

    def _take(self, sign: str) -> bool:
        taken = self._sign() == sign
        self.at += taken
        return taken

    def whole(self) -> bool:
        """Value of parts joined by `||`."""
        left = self._both()
        while self._take("||"):
            left = self._other(left, self._both, decided=left)
        return left

    def _both(self) -> bool:
        left = self._one()
        while self._take("&&"):
            left = self._other(left, self._one, decided=not left)
        return left

    def _other(self, left: object, read: Callable[[], bool], *, decided: bool) -> bool:
        """Read a part behind `&&` or `||`, whose value counts unless left decides."""
        before, self.asleep = self.asleep, self.asleep or decided
        right = read()
        self.asleep = before
        return bool(left) if decided else right

    def _one(self) -> bool:
        if self._take("!"):
            return not self._one()
        if self._take("("):
            value = self.whole()
            self._take(")")
            return value
        if self.at >= len(self.leaves):
            return False
        return self._word()

    def _word(self) -> bool:
        first = self.leaves[self.at]
        self.at += 1
        sign = self._sign()
        if sign in _TWO:
            self.at += 1
            right = self.leaves[self.at]
            self.at += 1
            return not self.asleep and self._compared(first, sign, right)
        one = re.fullmatch(r"-[a-zA-Z]", text_of(first)) is not None
        if one and sign and sign not in _SIGNS:
            word = self.leaves[self.at]
            self.at += 1
            return not self.asleep and _alone(
                text_of(first), single(word, self.shell), self.shell
            )
        return not self.asleep and _alone("-n", single(first, self.shell), self.shell)

    def _compared(self, left: Node, sign: str, right: Node) -> bool:
        shell = self.shell
        text = single(left, shell)
        if sign in _NUMBERS:
            numbers = [computed(t, shell) for t in (text, single(right, shell))]
            return _pair(numbers[0], sign, numbers[1], shell)
        if sign == "=~":
            return _pair(text, sign, expression_of(right, shell), shell)
        other = pattern(right, shell)
        if sign in _EQUAL and not other.startswith("~"):
            return _pair(text, sign, other, shell)
        return _pair(text, sign, single(right, shell), shell)


def _alone(sign: str, word: str, shell: Shell) -> bool:
    """Tell if a condition on one word holds."""
    if sign in ("-n", "-z"):
        rest = PART.sub("", word)
        if known(word) or rest:
            return bool(word) == (sign == "-n")
        there = shell.choose(f"-n {plain(word)}")
        settle(word, None if there else "", shell)
        return there == (sign == "-n")
    if sign == "-v" and known(word):
        if word in shell.settled():
            value = shell.value(word)
            return ("0" in value) if isinstance(value, dict) else value is not None
        return shell.choose(f"-v ${{{word}}}")
    return shell.choose(f"{sign} {plain(word)}")


def _pair(left: str, sign: str, right: str, shell: Shell) -> bool:
    """Tell if a condition on two words holds; the right one is a glob."""
    if sign in _EQUAL:
        return matches(left, right, shell) == (sign != "!=")
    if not known(left, right):
        return shell.choose(f"{plain(left)} {sign} {plain(right)}")
    if sign in _NUMBERS:
        # Of other words bash says "integer expression expected", and they are false.
        whole = re.fullmatch(r"\s*[-+]?\d+\s*\|\s*[-+]?\d+\s*", f"{left}|{right}")
        return whole is not None and _NUMBERS[sign](int(left), int(right))
    if sign == "=~":
        return _searched(left, right, shell)
    if sign.removeprefix("\\") in ("<", ">"):
        bare = right.replace("\\", "")
        if not re.fullmatch(r"[0-9a-z]*", left + bare):
            shell.refuse(f"{left} {sign} {bare}", "compares as the machine's language")
        return left < bare if sign.endswith("<") else left > bare
    return shell.choose(f"{left} {sign} {right}")


def _searched(text: str, expression: str, shell: Shell) -> bool:
    """Tell if a text has an expression's match, whose groups are kept."""
    if _NO_POSIX.search(expression):
        shell.refuse(expression, "is a regular expression that is not followed")
    try:
        found = re.search(pythonic(expression), text)
    except re.error:
        shell.refuse(expression, "is a regular expression that is not followed")
    groups = [found[0], *found.groups("")] if found else []
    its: Array = {str(at): group for at, group in enumerate(groups)}
    longest = found and "|" in expression
    shell.assign("BASH_REMATCH", shell.unsaid("$(match)") if longest else its)
    return found is not None


def matches(text: str, glob: str, shell: Shell) -> bool:
    """Tell if a text fits a glob; chooses where one of them is unknown.

    Returns:
        True where it fits. [-]
    """
    if is_extended(glob):
        shell.refuse(glob, "is a pattern that is not followed")
    if known(text, glob):
        return fits(text, glob)
    if glob.strip("*") == "" and glob:
        return True
    bare = re.sub(r"\\(.)", r"\1", glob)
    if text == bare:
        return True
    fitting = shell.choose(f"{plain(text)} = {plain(bare)}")
    if fitting and escaped(bare) == glob:
        settle(text, bare, shell)
    return fitting


def settle(word: str, value: str | None, shell: Shell) -> None:
    """Set the variable that a word consists of, which a condition has settled.

    Args:
        word: The word. [text]
        value: Its value; None where that stays unknown. [text]
        shell: State of the shell. [-]
    """
    part = PART.fullmatch(word)
    name = re.fullmatch(r"\$\{([A-Za-z_]\w*)\}", part[1]) if part else None
    if name and value is not None and name[1] not in shell.settled():
        shell.scopes[0][name[1]] = value
