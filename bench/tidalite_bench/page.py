"""A page of its own: tables and bar charts as SVG, no script, nothing loaded from anywhere."""

from collections import namedtuple
from html import escape

# `tables` are (head, rows); `charts` are texts of SVG within a figure; `notes` lines below.
Section = namedtuple("Section", "workload title about tables charts notes")
# Charts of a section that are seen at once.
FIRST = 4
# For who sees such a thing for the first time.
EXPLAINED = {
    "frames": "A table in Python's memory is turned into lines of text and sent to the server. Serialized is the turning alone, sent is until the client "
              "has got rid of everything, visible is until a question about the rows counts all of them. More rows a second is better.",
    "tsbs": "Machines (or trucks) report readings every few seconds; the curve shows how many rows a second arrive over one, two or more connections at once. "
            "Then the questions that a dashboard asks are put to every system, with the same answers from all.",
    "filters": "A few rows are looked for among many. Hot is when the table has just been read and lies in memory, cold is the first question after the system "
               "was started and memory was cleared, so that the disk counts.",
    "joins": "Each trade is asked for the quote of its share that was the last one at that moment, the classic question of such data: two tables are gone through in "
             "order of time. Less time is better.",
    "hits": "Questions of web analytics about a wide table. The relative time says how many times as long as the best system of each question a system takes, "
            "on average over all: 1 would be the best in every one.",
    "ingress": "A CSV file of share prices is read in. The clock stops when the rows are safe on the disk, as far as the system promises it; what that is stands in the table.",
    "late": "The same rows in order, a little out of order, and shuffled: what late data cost.",
    "h2o": "Ten questions that group a table by one or more columns, from few groups to as many as there are rows.",
}

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #d5dde5; } figure { margin: 1.5rem 0; }
table { border-collapse: collapse; font-size: .9rem; } th, td { padding: .25rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid #e4eaf0; }
nav a { margin-right: 1rem; } .wide { overflow-x: auto; } svg { max-width: 100%; height: auto; } .failed { color: #a3261d; }
th { color: #51606f; } tr.ours td { font-weight: 600; } .note { color: #51606f; } figcaption { font-weight: 600; } code { background: #f1f4f7; padding: 0 .2rem; }
"""


def label(name, most=26):
    return escape(name if len(name) <= most else name[:most - 1] + "…")


def bars(title, values, less_is_better=False):
    """A chart of one bar a system, ours in another colour, the best on top."""
    ordered = sorted(values.items(), key=lambda item: item[1], reverse=not less_is_better)
    longest = max(values.values(), default=1) or 1
    height, rows = 30, []
    for i, (name, value) in enumerate(ordered):
        width, colour = 560 * value / longest, "#0b7a75" if name.startswith("tidalite") else "#9aa9b7"
        y = i * height
        rows.append(f'<text x="220" y="{y + 19}" text-anchor="end">{label(name)}</text><rect x="230" y="{y + 4}" width="{max(width, 1):.1f}" height="21" fill="{colour}"/>'
                    f'<text x="{236 + width:.1f}" y="{y + 19}">{value:.3g}</text>')
    way = "less is better" if less_is_better else "more is better"
    return (f'<figure><figcaption>{escape(title)} <span class="note">({way})</span></figcaption>'
            f'<svg viewBox="0 0 880 {len(ordered) * height}" width="880" role="img" aria-label="{escape(title)}" font-size="14">{"".join(rows)}</svg></figure>')


def lines(title, series, x_name):
    """A chart of one line a system over numbers such as workers: {system: {x: y}}."""
    points = [(x, y) for values in series.values() for x, y in values.items()]
    if not points:
        return ""
    right, top = max(x for x, _ in points), max(y for _, y in points)
    place = lambda x, y: (60 + 640 * x / right, 280 - 250 * y / top)  # noqa: E731
    colours = ["#0b7a75", "#c8553d", "#5b6bb5", "#9aa9b7", "#b08900"]
    parts = [f'<line x1="60" y1="280" x2="720" y2="280" stroke="#888"/><text x="390" y="315" text-anchor="middle">{escape(x_name)}</text>',
             f'<text x="52" y="35" text-anchor="end">{top:.3g}</text><text x="52" y="284" text-anchor="end">0</text>']
    for x in sorted({x for x, _ in points}):
        parts.append(f'<text x="{place(x, 0)[0]:.0f}" y="298" text-anchor="middle">{x}</text>')
    for i, (name, values) in enumerate(sorted(series.items(), key=lambda item: not item[0].startswith("tidalite"))):
        at = [place(x, y) for x, y in sorted(values.items())]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colours[i % 5]}"/>' for x, y in at)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colours[i % 5]}" stroke-width="2"/>{dots}<text x="735" y="{50 + 22 * i}" fill="{colours[i % 5]}">{label(name, 17)}</text>')
    return f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 900 325" width="900" role="img" aria-label="{escape(title)}" font-size="14">{"".join(parts)}</svg></figure>'


def pairs(title, values):
    """Two bars a system, such as hot and cold, each kind on a scale of its own: {kind: {system: value}}. Less is better."""
    shades = {True: ["#0b7a75", "#7fc4c0"], False: ["#9aa9b7", "#d3dbe2"]}
    (first, _), *_ = values.items()
    names = sorted(values[first], key=values[first].get)
    parts = []
    for i, name in enumerate(names):
        y = i * 46
        parts.append(f'<text x="190" y="{y + 28}" text-anchor="end">{label(name, 22)}</text>')
        for j, (kind, found) in enumerate(values.items()):
            if name in found:
                width = 470 * found[name] / (max(found.values()) or 1)
                colour = shades[name.startswith("tidalite")][j]
                parts.append(f'<rect x="200" y="{y + 4 + 19 * j}" width="{max(width, 1):.1f}" height="17" fill="{colour}"/>'
                             f'<text x="{206 + width:.1f}" y="{y + 17 + 19 * j}">{found[name]:.3g} {escape(kind)}</text>')
    return (f'<figure><figcaption>{escape(title)} <span class="note">(less is better; {escape(" and ".join(values))} each on a scale of its own)</span></figcaption>'
            f'<svg viewBox="0 0 880 {len(names) * 46}" width="880" role="img" aria-label="{escape(title)}" font-size="14">{"".join(parts)}</svg></figure>')


def table(head, rows):
    cells = lambda row, tag: "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in row)  # noqa: E731
    ours = lambda row: ' class="ours"' if any(str(cell).startswith("tidalite") and "--" not in str(cell) for cell in row[:3]) else ""  # noqa: E731
    body = "".join(f"<tr{ours(row)}>{cells(row, 'td')}</tr>" for row in rows)
    return f"<div class=\"wide\"><table><tr>{cells(head, 'th')}</tr>{body}</table></div>"


def more(charts):
    return f"<details><summary>{len(charts)} more charts</summary>{''.join(charts)}</details>" if charts else ""


def page(machine, sections, failed=()):
    """`failed`: what was to be measured and was not."""
    links = "".join(f'<a href="#{escape(s.title.replace(" ", "-"))}">{escape(s.title)}</a>' for s in sections)
    parts = [f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Tidalite beside others</title><style>{STYLE}</style>',
             "<h1>Tidalite beside other databases</h1>",
             '<p>Measured by <code>tidalite-bench</code> on one machine, the systems in turns. Times are medians; "spread" is from the fastest to the slowest run, '
             "as a part of the median. Where that is larger than the difference of two systems, no ratio is given. What a system loses is shown like what it wins. "
             "Bars of Tidalite are green.</p>", f"<nav>{links}</nav>",
             *(f'<p class="failed">Not measured: {escape(what)}</p>' for what in failed),
             f"<details><summary>The machine, its speed, and the command</summary>{table(['machine', ''], [[key, value] for key, value in machine.items()])}</details>"]
    for section in sections:
        parts.append(f'<h2 id="{escape(section.title.replace(" ", "-"))}">{escape(section.title)}</h2><p>{escape(EXPLAINED[section.workload])}</p>{"".join(section.charts[:FIRST])}{more(section.charts[FIRST:])}'
                     f'{"".join(table(head, rows) for head, rows in section.tables if rows)}<p class="note">How it is done: {escape(section.about)}</p>')
        parts.extend(f'<p class="note">{escape(note)}</p>' for note in section.notes)
    return "".join(parts) + "</html>\n"
