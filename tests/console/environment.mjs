// Starts a server with demo data, the console and a browser.
//
// Without TIDALITE_CONSOLE=embedded the tests run console/dist against any server binary, also an older one.
//
// TIDALITE_BIN      the server binary
// TIDALITE_CONSOLE  `embedded`: the server itself serves the console; otherwise console/dist is served by a proxy
// CHROMIUM          the browser, /usr/bin/chromium if not set
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, openSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { startProxy } from "./console-proxy.mjs";

const consoleFolder = resolve(import.meta.dirname, "../../console");
const load = createRequire(join(consoleFolder, "package.json"));
const { chromium } = load("playwright-core");
const axeSource = load("axe-core").source;

const START_DEADLINE_MS = 60_000;

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** Calls `probe` until it returns a value that is true. */
export async function until(probe, what, deadlineMs = 30_000) {
  const end = Date.now() + deadlineMs;
  for (;;) {
    const value = await probe();
    if (value) return value;
    if (Date.now() > end) throw new Error(`not in time: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function answers(url) {
  try {
    return (await fetch(`${url}/ping`)).ok;
  } catch {
    return false;
  }
}

/** Starts `tidalite demo` or `tidalite serve` in a new folder. */
export async function startServer(command = "demo", flags = [], env = {}) {
  const binary = process.env.TIDALITE_BIN;
  if (!binary) throw new Error("TIDALITE_BIN is not set");
  const folder = mkdtempSync(join(tmpdir(), "tidalite-console-"));
  const [http, ilp] = [await freePort(), await freePort()];
  const log = openSync(join(folder, "log"), "w");
  const args = [
    command,
    "--data",
    join(folder, "data"),
    "--http",
    `127.0.0.1:${http}`,
    "--ilp",
    `127.0.0.1:${ilp}`,
    "--pg",
    "off",
    "--health",
    "off",
    ...flags,
  ];
  const child = spawn(binary, args, {
    stdio: ["ignore", log, log],
    env: { ...process.env, ...env },
  });
  const url = `http://127.0.0.1:${http}`;
  await until(() => child.exitCode !== null || answers(url), `${binary} ${args.join(" ")}`, START_DEADLINE_MS);
  if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
  const stop = async () => {
    if (child.exitCode === null) {
      const ended = new Promise((done) => child.once("exit", done));
      child.kill("SIGTERM");
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, stop };
}

/** Runs a statement at the server and returns the rows. */
export async function query(url, sql) {
  const answer = await (await fetch(`${url}/exec?${new URLSearchParams({ query: sql })}`)).json();
  if (answer.error) throw new Error(answer.error);
  return answer.dataset;
}

/** Waits until the rows of the demo have been written. */
async function demoLoaded(url) {
  let before = -1;
  await until(
    async () => {
      const [[rows]] = await query(url, "SELECT count() FROM readings").catch(() => [[-1]]);
      const isComplete = rows > 0 && rows === before;
      before = rows;
      return isComplete;
    },
    "rows of the demo",
    START_DEADLINE_MS,
  );
}

/** Starts everything for the tests of the console. */
export async function startConsole({ command = "demo", flags = [], env = {} } = {}) {
  const server = await startServer(command, flags, env);
  if (command === "demo") await demoLoaded(server.url);
  const isEmbedded = process.env.TIDALITE_CONSOLE === "embedded";
  const proxy = isEmbedded ? undefined : await startProxy(join(consoleFolder, "dist"), server.url);
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  const stop = async () => {
    await browser.close();
    proxy?.stop();
    await server.stop();
  };
  return { server: server.url, url: proxy?.url ?? server.url, browser, stop, stopServer: server.stop };
}

/**
 * Returns a function that runs a test in a new profile; errors of the page and violations of its content security
 * policy fail the test.
 */
export function browserTests(environmentOf) {
  return (name, body, options = {}) => {
    test(name, { timeout: 120_000 }, async () => {
      const { page, context, problems } = await openPage(environmentOf(), options);
      try {
        await body(page);
      } catch (error) {
        await page.screenshot({
          path: `${process.env.SCREENSHOTS ?? "/tmp"}/${name.replaceAll(/\W+/g, "-")}.png`,
        });
        throw error;
      } finally {
        await context.close();
      }
      assert.deepEqual(problems, []);
    });
  };
}

/** Fails if axe reports serious findings for the page; `place` names the state of the page. */
export async function checkAccessibility(page, place) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(
    serious.map(({ id, nodes }) => [place, id, nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]),
    [],
  );
}

/** Opens the console in a new profile and fails the test on errors of the page and violations of its policy. */
export async function openPage(environment, { hash = "", ...options } = {}) {
  const context = await environment.browser.newContext({
    viewport: { width: 1400, height: 860 },
    permissions: ["clipboard-read", "clipboard-write"],
    acceptDownloads: true,
    ...options,
  });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of (400|401)/.test(message.text())) problems.push(message.text());
  });
  await page.goto(environment.url + hash);
  await page.locator(".status-bar, .login").waitFor();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  return { page, context, problems };
}

/** Replaces the text of the editor. */
export async function setEditor(page, text) {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}

/** Replaces the text of the editor, runs the statement and waits for its end. */
export async function run(page, text) {
  await setEditor(page, text);
  await page.keyboard.press("Control+Enter");
  await page.locator(".summary .dot.done, .summary .dot.failed").waitFor({ timeout: 60_000 });
}

/** Returns the text under "rows" of the toolbar. */
export function summary(page) {
  return page.locator("[data-testid=row-summary]").innerText();
}
