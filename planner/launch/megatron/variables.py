"""Options of Megatron-LM whose values only a shell's variables know."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from planner.launch.megatron.known import VERSIONS, declared
from planner.launch.shell import Script, fill_words, refuse_unset, unset

RANKS = ("nproc_per_node", "nnodes")
"""Options of torchrun that count ranks. [text]"""


def plain(word: str) -> str:
    """Name of an option as its parser keeps it.

    Args:
        word: The option, perhaps with its value. [text]

    Returns:
        The name. [text]
    """
    return word.split("=", maxsplit=1)[0].lstrip("-").replace("-", "_")


def option_of(name: str) -> str:
    """An argument as a command line spells it.

    Args:
        name: As its parser keeps it. [text]

    Returns:
        The option. [text]
    """
    return "--" + name.replace("_", "-")


def filled(
    words: Sequence[str], deciding: AbstractSet[str], *, file: str
) -> tuple[list[str], list[str]]:
    """Words without options whose value only a variable knows, and those options.

    Args:
        words: Of a command line, variables filled in as far as files set them. [text]
        deciding: Arguments that decide a price. [text]
        file: Where they are from. [text]

    Returns:
        (words, options that decide no price as they are written). [text]

    Raises:
        BadInputError: An option that decides the price is one of them.
    """
    kept, left = list[str](), list[str]()
    for option, values in _options(words):
        shown = " ".join([option, *values])
        if not unset(shown):
            kept += [option, *values]
            continue
        name, _, inside = option.partition("=")
        if any(_dest(name, version) in deciding for version in VERSIONS):
            refuse_unset(name, " ".join([inside, *values]).strip(), file=file)
        left.append(shown)
    return kept, left


def _options(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Options, each with as many words as it takes; the program's words are gone."""
    option, values = "", list[str]()
    for word in (*words, "--"):
        if not word.startswith("--"):
            values.append(word)
            continue
        if option:
            yield option, values[: _takes(option)]
        option, values = word, []


def _takes(option: str) -> int | None:
    """Words that follow an option; none for as many as there are."""
    if "=" in option:
        return 0
    known = (declared(version) for version in VERSIONS)
    counts = [options[option]["nargs"] for options in known if option in options]
    if not counts or counts[0] in ("+", "*"):
        return None
    return counts[0] if isinstance(counts[0], int) else 1


def _dest(option: str, version: str) -> str:
    return str(declared(version).get(option, {}).get("dest", ""))


def uncounted(files: Mapping[str, str]) -> Iterator[str]:
    """Ranks that a variable has which no file sets.

    Args:
        files: Text by name. [text]

    Yields:
        The option, and what fills it. [text]
    """
    for text in files.values():
        words = Script(text).words() if "nproc" in text else []
        for option, values in _options(words):
            shown = " ".join([option, *values[:1]])
            if plain(option) in RANKS and unset(shown):
                yield f"{shown}: set by no file; {fill_words(unset(shown))}"
