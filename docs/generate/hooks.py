"""Hooks of mkdocs: pages that lie outside `docs/`, links between them, and tables."""

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from tables import TABLES

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "hardware/README.md": "hardware.md",
    "benchmarks/accuracy/README.md": "benchmarks/accuracy.md",
    "benchmarks/accuracy/rows/README.md": "benchmarks/rows.md",
    "benchmarks/memory/README.md": "benchmarks/memory.md",
    "benchmarks/search/README.md": "benchmarks/search.md",
    "benchmarks/whatif/README.md": "benchmarks/whatif.md",
    "benchmarks/search/gap.svg": "benchmarks/gap.svg",
    "benchmarks/search/growth.svg": "benchmarks/growth.svg",
}
"""File of the repository to the place on the site, where they differ."""
FILES = {place: path for path, place in PAGES.items()}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
"""Link or image: mark, text, target in the repository, anchor."""
TABLE = re.compile(r"<!-- table: ([\w -]+) -->")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the pages that lie outside `docs/` on the site.

    Args:
        files: Files of the site. [-]
        config: Settings of mkdocs. [-]

    Returns:
        The files, and those of `PAGES`.
    """
    for path, place in PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(
    markdown: str,
    page: Page,
    config: MkDocsConfig,  # noqa: ARG001  # mkdocs passes it by name
    files: Files,
) -> str:
    """Fill in the tables of a page and lead its links to pages of the site.

    Args:
        markdown: Text of the page. [-]
        page: The page. [-]
        config: Settings of mkdocs. [-]
        files: Files of the site. [-]

    Returns:
        Text of the page on the site.
    """
    here = page.file.src_uri
    source = FILES.get(here, join("docs", here))

    def led(link: re.Match[str]) -> str:
        mark, text, target, anchor = link.groups(default="")
        path = normpath(join(dirname(source), target))
        place = PAGES.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(place) is None:
            return text if (ROOT / path).exists() else link[0]
        return f"{mark}[{text}]({relpath(place, dirname(here) or '.')}{anchor})"

    return TABLE.sub(lambda found: TABLES[found[1]](), LINK.sub(led, markdown))
