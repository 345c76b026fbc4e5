// Dashboards in a browser, stored on a real server with the rows of the demo.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { browserTests, checkAccessibility, openPage, query, startConsole, until } from "./environment.mjs";

let environment;
before(async () => void (environment = await startConsole()), {
  timeout: 120_000,
});
after(() => environment?.stop());
const browserTest = browserTests(() => environment);

const panel = (page, title) => page.getByRole("region", { name: title, exact: true });

/** Replaces the text of the SQL editor of a dialog. */
async function setStatement(page, label, sql) {
  await page.getByRole("textbox", { name: label }).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(sql);
}

async function newDashboard(page, name) {
  if (!page.url().includes("#/dashboards")) await page.getByRole("button", { name: "Dashboards" }).click();
  await page.getByRole("button", { name: "New", exact: true }).click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name, level: 1 }).waitFor();
}

async function addPanel(page, { title, sql, kind = "auto" }) {
  await page.getByRole("button", { name: "Add a panel" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Title").fill(title);
  await setStatement(page, "Statement of the panel", sql);
  await dialog.getByLabel("Show as").selectOption(kind);
  await dialog.getByRole("button", { name: "Apply" }).click();
  await panel(page, title).waitFor();
}

async function save(page, version) {
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator(".badge", { hasText: `version ${version}` }).waitFor();
}

async function command(page, name, item) {
  await page.getByTitle(`Commands for ${name}`).click();
  await page.getByRole("menuitem", { name: item }).click();
}

const value = (page, title) => panel(page, title).locator(".single-value strong").innerText();

/** Waits until a panel shows a single value. */
function valueIs(page, title, wanted) {
  return until(async () => (await value(page, title).catch(() => "")) === wanted, `${title} = ${wanted}`);
}

async function setRange(page, from, to) {
  await page.getByLabel("Time range").selectOption("custom");
  await page.getByLabel("Value of :from").fill(from);
  await page.getByLabel("Value of :to").fill(to);
  await page.getByRole("button", { name: "Apply", exact: true }).click();
}

/** Counts requests whose statement contains a text. */
function countRequests(page, text) {
  const counted = { count: 0 };
  page.on("request", (request) => {
    if (request.url().endsWith("/exec") && (request.postData() ?? "").includes(text)) counted.count += 1;
  });
  return counted;
}

/** Sets `document.hidden` and dispatches `visibilitychange`. */
function setHidden(page, isHidden) {
  return page.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
}

browserTest("a dashboard is created, saved, read again, and seen by another browser through its link", async (page) => {
  await newDashboard(page, "Hosts & more");
  await addPanel(page, { title: "Rows", sql: "SELECT count() AS n FROM cpu", kind: "value" });
  await addPanel(page, { title: "Busy", sql: "SELECT hostname, usage_user FROM cpu LIMIT 5", kind: "table" });
  await addPanel(page, { title: "Line", sql: "SELECT timestamp, avg(usage_user) AS u FROM cpu SAMPLE BY 1h" });
  await valueIs(page, "Rows", "144,000");
  await panel(page, "Line").locator("canvas").waitFor();
  await page.locator(".badge", { hasText: "not on the server" }).waitFor();
  await save(page, 1);
  assert.equal(await page.locator(".badge", { hasText: "unsaved" }).count(), 0);
  const stored = await query(
    environment.server,
    "SELECT kind, version, author, body FROM console_documents WHERE name = 'Hosts & more'",
  );
  assert.deepEqual(stored[0].slice(0, 2), ["dashboard", 1]);
  assert.equal(JSON.parse(stored[0][3]).panels.length, 3);

  await page.reload();
  await valueIs(page, "Rows", "144,000");
  await command(page, "Hosts & more", "Copy the link");
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(new URL(link).hash, "#/dashboards/Hosts%20%26%20more?from=now-1h&to=now");
  const other = await openPage(environment, { hash: new URL(link).hash });
  await valueIs(other.page, "Rows", "144,000");
  await panel(other.page, "Busy").locator("[data-row='0']", { hasText: "host_0" }).waitFor();
  await panel(other.page, "Line").locator("canvas").waitFor();
  assert.deepEqual(other.problems, []);
  await other.context.close();
});

browserTest("panels are moved and resized by mouse and keyboard, edited and removed", async (page) => {
  await newDashboard(page, "Layout");
  for (const title of ["A", "B"]) await addPanel(page, { title, sql: `SELECT '${title}' AS x`, kind: "value" });
  const place = async (title) => {
    const style = await panel(page, title).getAttribute("style");
    return /grid-area: (\d+) \/ (\d+) \/ span (\d+) \/ span (\d+)/.exec(style).slice(1).map(Number);
  };
  assert.deepEqual(
    [await place("A"), await place("B")],
    [
      [1, 1, 8, 6],
      [1, 7, 8, 6],
    ],
  );
  await page.getByRole("button", { name: "Move B", exact: true }).focus();
  await page.keyboard.press("ArrowLeft");
  assert.deepEqual(
    [await place("A"), await place("B")],
    [
      [9, 1, 8, 6],
      [1, 6, 8, 6],
    ],
  );
  for (const key of ["Shift+ArrowLeft", "Shift+ArrowUp", "ArrowDown"]) await page.keyboard.press(key);
  assert.deepEqual(await place("B"), [2, 6, 7, 5]);

  const cell = (await page.locator(".dashboard-grid").evaluate((grid) => grid.clientWidth - 28 + 8)) / 12;
  const drag = async (locator, columns, rows) => {
    const box = await locator.boundingBox();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + columns * cell, y + rows * 42, { steps: 6 });
    await page.mouse.up();
  };
  await drag(page.getByRole("button", { name: "Move B", exact: true }), -5, -1);
  assert.deepEqual(await place("B"), [1, 1, 7, 5]);
  await drag(panel(page, "B").locator(".panel-resize"), 3, 2);
  assert.deepEqual(await place("B"), [1, 1, 9, 8]);
  assert.deepEqual(await place("A"), [10, 1, 8, 6]);

  await page.getByRole("button", { name: "Edit A" }).click();
  await page.getByRole("dialog").getByLabel("Title").fill("A2");
  await setStatement(page, "Statement of the panel", "SELECT 42 AS x");
  await page.keyboard.press("Control+Enter");
  await page.locator(".panel-preview strong", { hasText: "42" }).waitFor();
  await page.getByRole("button", { name: "Apply" }).click();
  await valueIs(page, "A2", "42");
  await page.getByRole("button", { name: "Remove B" }).click();
  assert.equal(await page.locator(".panel").count(), 1);
  await save(page, 1);
  await page.reload();
  await valueIs(page, "A2", "42");
  assert.deepEqual(await place("A2"), [10, 1, 8, 6]);
  // The statement of a panel opens in the editor.
  await page.getByRole("button", { name: "Query of A2" }).click();
  await page.locator(".cm-content", { hasText: "SELECT 42 AS x" }).waitFor();
});

browserTest("old versions are listed and restored", async (page) => {
  await newDashboard(page, "History");
  await addPanel(page, { title: "One", sql: "SELECT 1 AS x", kind: "value" });
  await save(page, 1);
  await page.getByRole("button", { name: "Remove One" }).click();
  await addPanel(page, { title: "Two", sql: "SELECT 2 AS x", kind: "value" });
  await save(page, 2);
  await command(page, "History", /^Versions/);
  const rows = page.getByRole("region", { name: "Versions" }).locator("tbody tr");
  await until(async () => (await rows.count()) === 2, "two versions");
  await rows.nth(1).getByRole("button", { name: "Restore" }).click();
  await page.locator(".badge", { hasText: "version 3" }).waitFor();
  await valueIs(page, "One", "1");
  assert.equal(await panel(page, "Two").count(), 0);
  assert.deepEqual(
    await query(
      environment.server,
      "SELECT version FROM console_documents WHERE kind = 'dashboard' AND name = 'History' ORDER BY replaces",
    ),
    [[1], [2], [3]],
  );
});

browserTest("two browsers save the same version: the second shows the conflict, no version is lost", async (page) => {
  await newDashboard(page, "Shared");
  await addPanel(page, { title: "Base", sql: "SELECT 0 AS x", kind: "value" });
  await save(page, 1);
  const other = await openPage(environment, { hash: "#/dashboards/Shared" });
  await valueIs(other.page, "Base", "0");
  await other.page.getByRole("button", { name: "Edit", exact: true }).click();
  await addPanel(other.page, { title: "Of the other", sql: "SELECT 2 AS x", kind: "value" });
  await addPanel(page, { title: "Mine", sql: "SELECT 1 AS x", kind: "value" });
  await save(other.page, 2);

  await page.getByRole("button", { name: "Save", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "A newer version exists" });
  await dialog.getByText("Version 2 of Shared was saved").waitFor();
  await checkAccessibility(page, "conflict");
  await dialog.getByRole("button", { name: "Continue editing" }).click();
  await panel(page, "Mine").waitFor();

  await page.getByRole("button", { name: "Save", exact: true }).click();
  await dialog.getByRole("button", { name: "Save mine as …" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Shared copy");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Shared copy", level: 1 }).waitFor();
  await page.locator(".badge", { hasText: "version 1" }).waitFor();
  await panel(page, "Mine").waitFor();

  await page.getByRole("button", { name: "Shared", exact: true }).click();
  await panel(page, "Mine").waitFor();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await dialog.getByRole("button", { name: "Save mine as the newest" }).click();
  await page.locator(".badge", { hasText: "version 3" }).waitFor();

  // The other browser edits version 2 and takes version 3.
  await other.page.getByRole("button", { name: "Remove Of the other" }).click();
  await other.page.getByRole("button", { name: "Save", exact: true }).click();
  await other.page.getByRole("button", { name: "Discard mine" }).click();
  await valueIs(other.page, "Mine", "1");
  await other.page.locator(".badge", { hasText: "version 3" }).waitFor();
  assert.deepEqual(other.problems, []);
  await other.context.close();
});

browserTest("variables: a text, a list from a query, and a time range", async (page) => {
  await newDashboard(page, "Choices");
  await page.getByRole("button", { name: "Edit", exact: true }).waitFor();
  await page.getByRole("button", { name: "Variables", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Add a variable" }).click();
  await dialog.getByLabel("Name").fill("host");
  await dialog.getByLabel("Kind").selectOption("list");
  await setStatement(page, "Query of the list host", "SELECT DISTINCT hostname FROM cpu ORDER BY hostname");
  await dialog.getByRole("button", { name: "Add a variable" }).click();
  await dialog.getByLabel("Name").last().fill("from");
  await dialog.getByText(":from is the time range of the dashboard").waitFor();
  assert.equal(await dialog.getByRole("button", { name: "Apply" }).isDisabled(), true);
  await dialog.getByLabel("Name").last().fill("least");
  await dialog.getByLabel("First value").last().fill("0");
  await checkAccessibility(page, "variables");
  await dialog.getByRole("button", { name: "Apply" }).click();
  await addPanel(page, {
    title: "Count",
    sql: "SELECT count() AS n FROM cpu WHERE hostname = :host AND usage_user >= :least AND timestamp >= :from AND timestamp < :to",
    kind: "value",
  });
  // The last hour has no rows of 2016.
  await valueIs(page, "Count", "0");
  await setRange(page, "2016-01-01T06:00", "2016-01-01T08:00");
  await valueIs(page, "Count", "120");
  assert.equal(await page.getByLabel("Value of :host").inputValue(), "host_0");
  const request = page.waitForRequest((r) => (r.postData() ?? "").includes("hostname = 'host_7'"));
  await page.getByLabel("Value of :host").selectOption("host_7");
  assert.match(JSON.parse((await request).postData()).query, /usage_user >= 0 AND timestamp >= '2016-01-01T06:00/);
  await page.getByLabel("Value of :least").fill("101");
  await page.getByLabel("Value of :least").press("Enter");
  await valueIs(page, "Count", "0");
  await page.getByLabel("Value of :least").fill("0'; DROP TABLE cpu; --");
  await page.getByLabel("Value of :least").press("Enter");
  await panel(page, "Count").getByRole("alert").waitFor();
  await page.getByLabel("Value of :least").fill("-1");
  await page.getByLabel("Value of :least").press("Enter");
  await until(async () => (await panel(page, "Count").getByRole("alert").count()) === 0, "no error");
  // A link contains the choices; the dashboard is not changed by them.
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await save(page, 1);
  await page.getByLabel("Value of :host").selectOption("host_9");
  await command(page, "Choices", "Copy the link");
  const { hash } = new URL(await page.evaluate(() => navigator.clipboard.readText()));
  const other = await openPage(environment, { hash });
  await until(async () => (await other.page.getByLabel("Value of :host").inputValue()) === "host_9", "the host");
  await valueIs(other.page, "Count", "120");
  assert.equal(await other.page.locator(".badge", { hasText: "unsaved" }).count(), 0);
  await other.context.close();
  await page.getByLabel("Value of :host").selectOption("host_7");
  // A save keeps the choices.
  await save(page, 2);
  await page.reload();
  await page.getByRole("heading", { name: "Choices", level: 1 }).waitFor();
  await until(async () => (await page.getByLabel("Value of :host").inputValue()) === "host_7", "the chosen host");
  assert.equal(await page.getByLabel("Value of :least").inputValue(), "-1");
  await page.getByText("2016-01-01 06:00 – 2016-01-01 08:00").waitFor({ state: "attached" });
});

browserTest("a zoom in a chart sets the time range of all panels", async (page) => {
  await newDashboard(page, "Zoom");
  await addPanel(page, {
    title: "Chart",
    sql: "SELECT timestamp, avg(usage_user) AS u FROM cpu WHERE timestamp BETWEEN :from AND :to SAMPLE BY :interval",
  });
  await addPanel(page, {
    title: "Hours",
    sql: "SELECT count() AS n FROM (SELECT timestamp, count() FROM cpu WHERE timestamp BETWEEN :from AND :to SAMPLE BY 1h)",
    kind: "value",
  });
  await setRange(page, "2016-01-01", "2016-01-01 23:59");
  await valueIs(page, "Hours", "24");
  const box = await panel(page, "Chart").locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width, box.y + 40, { steps: 5 });
  await page.mouse.up();
  await until(async () => ["11", "12", "13"].includes(await value(page, "Hours")), "the second half of the day");
  await panel(page, "Chart").locator(".u-over").dblclick();
  await valueIs(page, "Hours", "24");
});

browserTest("refreshes are as frequent as chosen; a slow panel has one request at a time", async (page) => {
  await newDashboard(page, "Refresh");
  await addPanel(page, { title: "Fast", sql: "SELECT 'fast', count() AS n FROM cpu", kind: "value" });
  await addPanel(page, { title: "Slow", sql: "SELECT 'slow', count() AS n FROM cpu", kind: "value" });
  await valueIs(page, "Slow", "144,000");
  const fast = countRequests(page, "'fast'");
  const slow = countRequests(page, "'slow'");
  const held = [];
  await page.route(
    (url) => url.pathname === "/exec",
    (route) => ((route.request().postData() ?? "").includes("'slow'") ? held.push(route) : route.continue()),
  );
  const started = performance.now();
  await page.getByLabel("Refresh", { exact: true }).selectOption("750");
  await until(() => fast.count >= 6, "six refreshes of the fast panel");
  const intervals = (performance.now() - started) / 750;
  assert.ok(fast.count <= intervals + 1, `${fast.count} requests in ${intervals} intervals`);
  assert.equal(slow.count, 1);
  await panel(page, "Slow")
    .getByText(/^[3-9] skipped$/)
    .waitFor();
  const answered = page.waitForResponse((response) => (response.request().postData() ?? "").includes("'slow'"));
  await held[0].continue();
  await answered;
  await until(() => slow.count === 2, "the next request of the slow panel");
  await page.getByLabel("Refresh", { exact: true }).selectOption("0");
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

browserTest("a hidden tab sends no requests, and is refreshed when it is shown again", async (page) => {
  await newDashboard(page, "Hidden");
  await addPanel(page, { title: "Now", sql: "SELECT 'hidden', now() AS at", kind: "table" });
  await panel(page, "Now").locator("[data-row='0']").waitFor();
  await page.clock.install();
  await page.getByLabel("Refresh", { exact: true }).selectOption("750");
  const first = page.waitForResponse((response) => response.url().endsWith("/exec"));
  await page.clock.runFor(800);
  await first;
  await setHidden(page, true);
  let requests = 0;
  page.on("request", () => void (requests += 1));
  await page.clock.runFor(120_000);
  assert.equal(requests, 0);
  const again = page.waitForRequest((request) => (request.postData() ?? "").includes("'hidden'"));
  await setHidden(page, false);
  await again;
});

browserTest("errors and statements that write are shown in their panels only", async (page) => {
  await newDashboard(page, "Errors");
  const writes = countRequests(page, "DELETE");
  await addPanel(page, { title: "Good", sql: "SELECT 5 AS x", kind: "value" });
  await addPanel(page, { title: "Wrong", sql: "SELECT hostnam FROM cpu", kind: "table" });
  await addPanel(page, { title: "Writes", sql: "DELETE FROM cpu", kind: "table" });
  await addPanel(page, { title: "Unknown", sql: "SELECT :nosuch", kind: "table" });
  await valueIs(page, "Good", "5");
  await panel(page, "Wrong").getByText('column "hostnam" does not exist').waitFor();
  await panel(page, "Writes").getByText("a panel runs a query; this statement may write").waitFor();
  await panel(page, "Unknown").getByText("the dashboard has no variable :nosuch").waitFor();
  assert.equal(writes.count, 0);
});

browserTest("the dashboard of the demo data is there and live", async (page) => {
  const origins = new Set();
  page.on("request", (request) => origins.add(new URL(request.url()).origin));
  await page.goto(`${environment.url}/#/dashboards/Demo%20data`);
  await page.locator(".panel").first().waitFor();
  assert.equal(await page.locator(".panel").count(), 8);
  await until(
    async () => (await page.locator(".panel .plot canvas, .panel .single-value, .panel [data-row='0']").count()) === 8,
    "all panels to have rows",
  );
  assert.equal(await page.locator(".panel-error").count(), 0);
  assert.equal(await page.getByLabel("Refresh", { exact: true }).inputValue(), "5000");
  await valueIs(page, "Hosts", "100");
  const next = countRequests(page, "DISTINCT hostname) AS hosts");
  await until(() => next.count >= 1, "a refresh");
  assert.deepEqual([...origins], [new URL(environment.url).origin]);
  // It is part of the console: nothing was stored for it.
  await page.locator(".badge", { hasText: "not on the server" }).waitFor();
  await page.screenshot({ path: `${process.env.SCREENSHOTS ?? "/tmp"}/console-dashboard.png` });
});

browserTest("a dashboard is exported, imported elsewhere and deleted", async (page) => {
  await newDashboard(page, "Travels");
  await addPanel(page, { title: "X", sql: "SELECT 7 AS x", kind: "value" });
  await save(page, 1);
  await page.getByTitle("Commands for Travels").click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: "Export as JSON" }).click(),
  ]);
  assert.equal(download.suggestedFilename(), "Travels.dashboard.json");
  const text = readFileSync(await download.path(), "utf8");
  await command(page, "Travels", /^Delete/);
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await until(async () => (await page.getByRole("button", { name: "Travels" }).count()) === 0, "it to disappear");

  const importText = (content) =>
    page.getByLabel("File of a dashboard").setInputFiles({
      name: "x.json",
      mimeType: "application/json",
      buffer: Buffer.from(content),
    });
  await importText('{"tidalite":"notebook","format":1,"body":{}}');
  await page.getByText("the file is not a dashboard of Tidalite").waitFor();
  await importText(text);
  await page.getByRole("heading", { name: "Travels", level: 1 }).waitFor();
  await valueIs(page, "X", "7");
  await page.locator(".badge", { hasText: "unsaved changes" }).waitFor();
  // Versions 1 and 2 (the deletion) exist.
  await save(page, 3);
});

for (const colorScheme of ["light", "dark"]) {
  browserTest(
    `no serious findings of axe on dashboards in ${colorScheme}`,
    async (page) => {
      await page.goto(`${environment.url}/#/dashboards`);
      await page.getByRole("button", { name: "Open the dashboard of the demo data" }).waitFor();
      await checkAccessibility(page, "list");
      await page.getByRole("button", { name: "Open the dashboard of the demo data" }).click();
      await page.locator(".panel canvas").first().waitFor();
      await checkAccessibility(page, "dashboard");
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await checkAccessibility(page, "edit mode");
      await page.getByRole("button", { name: "Edit One host" }).click();
      await page.locator(".panel-preview canvas").waitFor();
      await checkAccessibility(page, "panel editor");
      await page.keyboard.press("Escape");
      await until(async () => (await page.getByRole("dialog").count()) === 0, "the dialog to close");
    },
    { colorScheme },
  );
}

test("a read-only server shows dashboards and refuses to save", { timeout: 60_000 }, async () => {
  const own = await startConsole({ command: "serve", flags: ["--read-only"] });
  const { page, context, problems } = await openPage(own, { hash: "#/dashboards" });
  await newDashboard(page, "Local");
  await addPanel(page, { title: "Y", sql: "SELECT 3 AS y", kind: "value" });
  await valueIs(page, "Y", "3");
  const button = page.getByRole("button", { name: "Save", exact: true });
  await until(() => button.isDisabled(), "the button to be disabled");
  assert.equal(await button.getAttribute("title"), "The server is read-only");
  assert.deepEqual(problems, []);
  await context.close();
  await own.stop();
});
