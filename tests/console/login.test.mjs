// The console at a server that requires credentials.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openPage, run, startConsole, summary } from "./environment.mjs";

const TOKEN = "token-of-the-test";
let environment;
before(
  async () => {
    const env = {
      TIDALITE_HTTP_USER: "ann",
      TIDALITE_HTTP_PASSWORD: "säcret",
      TIDALITE_HTTP_TOKENS: TOKEN,
    };
    environment = await startConsole({ command: "serve", env });
  },
  { timeout: 120_000 },
);
after(() => environment?.stop());

test(
  "a wrong password is refused, the correct one logs in and lasts for the browser tab",
  { timeout: 60_000 },
  async () => {
    const { page, context, problems } = await openPage(environment);
    await page.getByLabel("User").fill("ann");
    await page.getByLabel("Password", { exact: true }).fill("wrong");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("User name, password or token are not correct.").waitFor();
    await page.getByLabel("Password", { exact: true }).fill("säcret");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.locator(".cm-content").waitFor();
    await run(page, "SELECT 1 AS x");
    assert.equal(await summary(page), "1 row");
    await page.reload();
    await page.locator(".cm-content").waitFor();
    await run(page, "SELECT x FROM long_sequence(2)");
    assert.equal(await summary(page), "2 rows");
    // A saved document names the user.
    await page.getByRole("button", { name: "Saved", exact: true }).click();
    await page.getByRole("button", { name: "Save this tab …" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.locator(".tree-row").hover();
    await page.getByRole("button", { name: /^Versions of/ }).click();
    await page.getByRole("cell", { name: "ann", exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByRole("button", { name: "Log in" }).waitFor();
    assert.deepEqual(problems, []);
    await context.close();
  },
);

test("a token logs in", { timeout: 60_000 }, async () => {
  const { page, context } = await openPage(environment);
  await page.getByRole("button", { name: "Token" }).click();
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator(".cm-content").waitFor();
  await run(page, "SELECT 1 AS x");
  assert.equal(await summary(page), "1 row");
  await context.close();
});

test(
  "an empty server offers the first steps, a read-only server says so, a stopped server is noticed",
  { timeout: 60_000 },
  async () => {
    const own = await startConsole({ command: "serve", flags: ["--read-only"] });
    const { page, context } = await openPage(own);
    await page.getByRole("button", { name: /Import a CSV file/ }).waitFor();
    await page.locator(".status-bar .badge", { hasText: "read-only" }).waitFor();
    await run(page, "CREATE TABLE t (x LONG)");
    assert.match(await page.locator(".error-panel").innerText(), /read-only/);
    await own.stopServer();
    await run(page, "SELECT 1");
    assert.match(await page.locator(".error-panel").innerText(), /cannot be reached/);
    await context.close();
    await own.stop();
  },
);
