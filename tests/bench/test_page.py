"""The report: whole, readable without a network, and as a browser lays it out."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from tidalite_bench import filters, frames, hits, ingress, page, tsbs  # noqa: E402

BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
SYSTEMS = {"tidalite-server": 1.0, "questdb": 3.0, "duckdb": 2.0, "a system whose name is long": 40.0}


def records():
    """Two runs of everything, as the workloads record them."""
    found = {name: [] for name in ("frames", "tsbs", "filters", "hits", "ingress")}
    for run in range(2):
        for name, factor in SYSTEMS.items():
            common = dict(system=name, run=run, version=f"{name} 1.0", settings="<defaults>", durability="synced", clock="over HTTP", rows=1000, bytes=5000, disk={"data": 1 << 20})
            for case in ("sent", "visible"):
                found["frames"].append(common | dict(case=case, seconds=factor))
            for workers in (1, 2, 4):
                found["tsbs"].append(common | dict(case="cpu-only", workers=workers, seconds=factor / workers, sent_s=factor, settled_s=factor, rows_s=workers * 1e6 / factor))
            found["tsbs"].append(common | dict(case="lastpoint", queries=3, seconds=factor * (1 + run / 100), p95_s=factor))
            for case in ("1 narrow filter, all columns", "3 count"):
                found["filters"] += [common | dict(case=case, seconds=factor / 100), common | dict(case=case, seconds=factor / 10, cold="page cache dropped")]
            found["hits"] += [common | dict(case="load", seconds=factor)] * (run == 0) + [common | dict(case="q0", times=[factor, factor / 2, factor / 2], agrees="all")] * (run == 0)
            found["ingress"].append(common | dict(threads=2, seconds=factor, rows_s=1e6 / factor, cpu_s=factor, whole_s=None))
    return found


@pytest.fixture(scope="module")
def whole():
    made = records()
    sections = []
    for name, module in (("frames", frames), ("tsbs", tsbs), ("filters", filters), ("hits", hits), ("ingress", ingress)):
        tables = [module.table(made[name]), *([module.details(made[name])] if hasattr(module, "details") else [])]
        sections.append(page.Section(name, name, "how <it> is done", tables, module.charts(made[name]), ["a note"]))
    return page.page({"cpu": "<x86>"}, sections, ["late: a server <ended>"])


def test_every_element_is_closed_and_nothing_is_loaded(whole):
    empty, still_open, faults = {"meta"}, [], []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attributes):
            faults.extend(name for name, _ in attributes if name in ("src", "onclick") or tag in ("script", "link"))
            if tag not in empty:
                still_open.append(tag)

        def handle_startendtag(self, tag, attributes):
            faults.extend(name for name, _ in attributes if name == "src")

        def handle_endtag(self, tag):
            if not still_open or still_open.pop() != tag:
                faults.append(tag)

    Reader().feed(whole)
    assert faults == [] and still_open == []
    assert "&lt;x86&gt;" in whole and "&lt;ended&gt;" in whole and "<it>" not in whole
    assert "url(" not in whole and "http:" not in whole


def test_the_charts_of_the_five_sources_are_there(whole):
    titles = re.findall(r'aria-label="([^"]*)"', whole)
    for part in ("DataFrame sent", "DataFrame visible", "Ingest by connections", "Query 3 count", "Relative hot time", "Relative cold time", "CSV until durable", "Size on disk"):
        assert any(part in title for title in titles), part
    assert page.EXPLAINED["hits"].split(".")[0] in whole


@pytest.mark.skipif(not BROWSER, reason="no Chromium on the path")
def test_a_browser_shows_it_without_anything_cut_off(whole, tmp_path):
    """The browser measures every text of a chart against its chart, and the page against its window."""
    probe = """<script>
        const out = [];
        for (const svg of document.querySelectorAll('svg')) {
            const all = svg.getBoundingClientRect();
            for (const text of svg.querySelectorAll('text')) {
                const box = text.getBoundingClientRect();
                if (box.left < all.left - 1 || box.right > all.right + 1 || box.top < all.top - 1 || box.bottom > all.bottom + 1) out.push(text.textContent);
            }
        }
        document.title = JSON.stringify({cut: out, charts: document.querySelectorAll('svg').length, wide: document.documentElement.scrollWidth > innerWidth});
    </script>"""
    file = tmp_path / "page.html"
    file.write_text(whole.replace("</html>", probe + "</html>"))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path}/profile", "--window-size=1300,900", "--dump-dom", file.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=90)
    found = re.search(r"<title>(.*?)</title>", dom.stdout, re.S)
    assert found, dom.stderr[-2000:]
    charts = whole.count("<svg")
    assert found.group(1) == f'{{"cut":[],"charts":{charts},"wide":false}}' and charts >= 10
