// Notebooks and saved queries in a browser, stored on a real server with the rows of the demo.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import {
  browserTests,
  checkAccessibility,
  openPage,
  query,
  run,
  setEditor,
  startConsole,
  until,
} from "./environment.mjs";

let environment;
before(async () => void (environment = await startConsole()), {
  timeout: 120_000,
});
after(() => environment?.stop());
const browserTest = browserTests(() => environment);

const cell = (page, number) => page.getByRole("region", { name: `Cell ${number}`, exact: true });

async function newNotebook(page, name) {
  await page.keyboard.press("Alt+3");
  await page.getByRole("button", { name: "New", exact: true }).click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name, level: 1 }).waitFor();
}

async function addCell(page, kind, text) {
  const before = await page.locator(".notebook-cell").count();
  await page.getByRole("group", { name: "Add a cell" }).getByRole("button", { name: kind }).click();
  const label = kind === "Text" ? `Text ${before + 1}` : `Statement ${before + 1}`;
  await page.getByRole("textbox", { name: label }).click();
  await page.keyboard.insertText(text);
  if (kind === "Text") await page.keyboard.press("Control+Enter");
}

async function save(page, version) {
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator(".badge", { hasText: `version ${version}` }).waitFor();
}

browserTest("a notebook has texts, statements and charts, and is seen by another browser", async (page) => {
  await newNotebook(page, "Report");
  await addCell(page, "Text", "# Usage\n\nA **bold** word, `code`, <b>no tag</b> and [a link](javascript:alert(1)).");
  await addCell(page, "SQL", "SELECT hostname, usage_user FROM cpu LIMIT 3");
  await addCell(page, "Chart", "SELECT timestamp, avg(usage_user) AS u FROM cpu SAMPLE BY 1h");
  await cell(page, 1).getByRole("heading", { name: "Usage" }).waitFor();
  assert.equal(await cell(page, 1).locator("strong").innerText(), "bold");
  assert.equal(await cell(page, 1).locator("b, a").count(), 0);
  assert.match(await cell(page, 1).innerText(), /<b>no tag<\/b>/);
  await page.getByRole("button", { name: "Run all" }).click();
  await cell(page, 2).locator("[data-row='2']").waitFor();
  await cell(page, 3).locator("canvas").waitFor();
  await cell(page, 3).getByLabel("Show as").selectOption("area");
  await checkAccessibility(page, "notebook");
  await page.screenshot({ path: `${process.env.SCREENSHOTS ?? "/tmp"}/console-notebook.png` });
  await save(page, 1);

  const other = await openPage(environment, { hash: "#/notebooks/Report" });
  await cell(other.page, 1).getByRole("heading", { name: "Usage" }).waitFor();
  // A notebook that is opened runs nothing by itself.
  assert.equal(await cell(other.page, 2).locator("[data-row]").count(), 0);
  await other.page.getByRole("button", { name: "Run statement 3" }).click();
  await cell(other.page, 3).locator("canvas").waitFor();
  assert.equal(await cell(other.page, 3).getByLabel("Show as").inputValue(), "area");
  assert.deepEqual(other.problems, []);
  await other.context.close();
});

browserTest("cells are moved and removed, statements report rows and errors", async (page) => {
  await query(environment.server, "CREATE TABLE IF NOT EXISTS noted (ts TIMESTAMP, v LONG) TIMESTAMP(ts)");
  await newNotebook(page, "Steps");
  await addCell(page, "SQL", "INSERT INTO noted SELECT x::timestamp, x FROM long_sequence(20);");
  await addCell(page, "SQL", "SELECT nosuch FROM noted");
  await addCell(page, "SQL", "SELECT count() AS n FROM noted");
  await page.getByRole("button", { name: "Run all" }).click();
  await cell(page, 1).getByText("Done: 20 rows inserted").waitFor();
  await cell(page, 2).getByRole("alert").getByText('column "nosuch" does not exist').waitFor();
  // An error ends the run.
  assert.equal(await cell(page, 3).locator("[data-row]").count(), 0);
  await cell(page, 2).hover();
  await page.getByRole("button", { name: "Remove cell 2" }).click();
  await page.getByRole("button", { name: "Move cell 2 up" }).focus();
  await page.keyboard.press("Enter");
  await cell(page, 1).locator(".cm-content", { hasText: "SELECT count()" }).waitFor();
  await page.getByRole("button", { name: "Run statement 1" }).click();
  await cell(page, 1).locator("[data-row='0']", { hasText: "20" }).waitFor();
  await save(page, 1);
  await page.reload();
  await cell(page, 2).locator(".cm-content", { hasText: "INSERT INTO noted" }).waitFor();
  assert.equal(await page.locator(".notebook-cell").count(), 2);
  assert.deepEqual(await query(environment.server, "SELECT count() FROM noted"), [[20]]);
});

browserTest(
  "a query is saved, opened by its link elsewhere, changed there, and the conflict is shown",
  async (page) => {
    await setEditor(page, "SELECT 1 AS saved");
    await page.getByRole("button", { name: "Saved", exact: true }).click();
    await page.getByRole("button", { name: "Save this tab …" }).click();
    await page.getByLabel("Name", { exact: true }).fill("My query");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.locator(".tree-name", { hasText: "My query" }).waitFor();
    await page.locator(".tab.active", { hasText: "My query" }).waitFor();

    const other = await openPage(environment, { hash: "#/query/My%20query" });
    await other.page.locator(".cm-content", { hasText: "SELECT 1 AS saved" }).waitFor();
    await run(other.page, "SELECT 2 AS saved");
    await other.page.getByRole("button", { name: "Saved", exact: true }).click();
    await other.page.getByRole("button", { name: "Save My query" }).click();
    await until(
      async () =>
        (await query(environment.server, "SELECT count() FROM console_documents WHERE name = 'My query'"))[0][0] === 2,
      "two versions",
    );

    await setEditor(page, "SELECT 3 AS saved");
    await page.reload();
    await page.getByRole("button", { name: "Saved", exact: true }).click();
    await page.getByRole("button", { name: "Save My query" }).click();
    const dialog = page.getByRole("dialog", { name: "A newer version exists" });
    await dialog.getByRole("button", { name: "Save mine as the newest" }).click();
    await until(async () => (await dialog.count()) === 0, "the dialog to close");
    await page.locator(".tree-row", { hasText: "My query" }).hover();
    await page.getByRole("button", { name: "Versions of My query" }).click();
    const rows = page.getByRole("region", { name: "Versions" }).locator("tbody tr");
    await until(async () => (await rows.count()) === 3, "three versions");
    await checkAccessibility(page, "versions of a query");
    await rows.nth(2).getByRole("button", { name: "Restore" }).click();
    await page.locator(".cm-content", { hasText: "SELECT 1 AS saved" }).waitFor();
    assert.deepEqual(other.problems, []);
    await other.context.close();
  },
);
