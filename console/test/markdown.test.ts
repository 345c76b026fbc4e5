import assert from "node:assert/strict";
import { test } from "node:test";
import { parseInline, parseMarkdown, safeTarget, type Block, type Inline } from "../src/notebooks/markdown.ts";

const text = (value: string): Inline => ({ kind: "text", text: value });
const paragraph = (value: string): Block => ({ kind: "paragraph", children: [text(value)] });

test("headings, paragraphs and rules", () => {
  assert.deepEqual(parseMarkdown("# One\ntwo\nthree\n\nfour\n***\n### Five ##"), [
    { kind: "heading", level: 1, children: [text("One")] },
    paragraph("two\nthree"),
    paragraph("four"),
    { kind: "rule" },
    { kind: "heading", level: 3, children: [text("Five")] },
  ]);
});

test("nested lists", () => {
  assert.deepEqual(parseMarkdown("- a\n  - b\n- c\n\n1. d\n2. e"), [
    {
      kind: "list",
      isOrdered: false,
      items: [[paragraph("a"), { kind: "list", isOrdered: false, items: [[paragraph("b")]] }], [paragraph("c")]],
    },
    { kind: "list", isOrdered: true, items: [[paragraph("d")], [paragraph("e")]] },
  ]);
});

test("code keeps its text", () => {
  assert.deepEqual(parseMarkdown("```sql\nSELECT *\n# no heading\n```\nafter"), [
    { kind: "code", text: "SELECT *\n# no heading" },
    paragraph("after"),
  ]);
  assert.deepEqual(parseMarkdown("```\nopen"), [{ kind: "code", text: "open" }]);
});

test("quotes and tables", () => {
  assert.deepEqual(parseMarkdown("> a\n> > b"), [
    { kind: "quote", children: [paragraph("a"), { kind: "quote", children: [paragraph("b")] }] },
  ]);
  assert.deepEqual(parseMarkdown("| a | b |\n|---|:-:|\n| 1 | x \\| y |"), [
    { kind: "table", head: [[text("a")], [text("b")]], rows: [[[text("1")], [text("x | y")]]] },
  ]);
});

test("emphasis, code and links within a line", () => {
  assert.deepEqual(parseInline("a **b *c*** `d*` snake_case_name [e](https://x.y) \\*f\\*"), [
    text("a "),
    { kind: "strong", children: [text("b "), { kind: "em", children: [text("c")] }] },
    text(" "),
    { kind: "code", text: "d*" },
    text(" snake_case_name "),
    { kind: "link", href: "https://x.y", children: [text("e")] },
    text(" *f*"),
  ]);
});

test("tags stay text, scripts are no links", () => {
  const source = "<script>alert(1)</script> <img src=x onerror=alert(1)>";
  assert.deepEqual(parseMarkdown(source), [paragraph(source)]);
  for (const target of ["javascript:alert(1)", "JaVaScRiPt:x", "data:text/html,x", "//evil.example", "vbscript:x"]) {
    assert.equal(safeTarget(target), undefined, target);
    assert.deepEqual(
      parseInline(`[a](${target})`).some((part) => part.kind === "link"),
      false,
      target,
    );
  }
  assert.equal(safeTarget("#/dashboards/a"), "#/dashboards/a");
});

test("hostile text is parsed in bounded time", () => {
  for (const source of [
    "*".repeat(20_000),
    "[".repeat(20_000),
    "> ".repeat(5000),
    "`".repeat(20_000),
    "_a".repeat(9000),
  ]) {
    const started = performance.now();
    parseMarkdown(source);
    assert.ok(performance.now() - started < 2000, source.slice(0, 10));
  }
});
