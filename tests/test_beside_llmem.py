"""Figures beside LLMem's are those of the report of today."""

import re

from shown_commands import ROOT

ROW = re.compile(r"^\| ([\w.-]+) \| (\d+) \| ([\d.]+) % \|$", re.MULTILINE)


def test_rows_beside_llmem_are_those_of_the_report(*, rewriting: bool) -> None:
    page = ROOT / "docs" / "accuracy.md"
    report = (ROOT / "benchmarks" / "accuracy" / "README.md").read_text()
    cells = [line.strip("| ").split(" | ") for line in report.splitlines()]
    known = {each[0]: each[-2:] for each in cells if len(each) == 9}
    text = page.read_text()
    found = ROW.findall(text)
    assert len(found) > 4
    now = {name: f"| {name} | {' | '.join(known[name])} |" for name, _, _ in found}
    if rewriting:
        page.write_text(ROW.sub(lambda row: now[row[1]], text))
        return
    assert [row[0] for row in ROW.finditer(text)] == list(now.values())
