"""Public launch files, read back and priced: ``python -m benchmarks.imports``.

``--write`` puts the table on the page, docs/imports.md.
"""

import argparse

from benchmarks.imports.page import PAGE, page


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/imports.md")
    text = page()
    if parser.parse_args().write:
        PAGE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
