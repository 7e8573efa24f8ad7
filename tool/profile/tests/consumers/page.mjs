// Looks at a page in Chromium: `node page.mjs NODE_MODULES DIRECTORY CASE`. A case fails by an exception.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";
import { cases as ofOneMetric } from "./page-cases.mjs";
import { cases as ofSeveral } from "./page-metrics.mjs";

const [modules, directory, name] = process.argv.slice(2);
const { chromium } = createRequire(`${resolve(modules)}/`)("playwright-core");

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  // Chromium's sandbox does not run as root.
  args: process.getuid() === 0 ? ["--no-sandbox"] : [],
});
try {
  const file = pathToFileURL(join(directory, "page.html")).href;
  const complaints = [];
  const open = async (options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1366, height: 768 }, colorScheme: "light", ...options });
    // Machines that build are busy: only what never comes is a fault.
    context.setDefaultTimeout(180_000);
    const page = await context.newPage();
    page.on("console", (message) => complaints.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => complaints.push(`error: ${error.stack}`));
    page.on("dialog", (dialog) => complaints.push(`dialog: ${dialog.message()}`));
    page.on("request", (request) => request.url() === file || complaints.push(`request: ${request.url()}`));
    await page.goto(file);
    await page.waitForSelector("#app[data-ready]");
    return page;
  };
  const json = (name) => JSON.parse(readFileSync(join(directory, `${name}.json`), "utf8"));
  const axe = readFileSync(join(modules, "axe-core/axe.min.js"), "utf8");
  const run = { ...ofOneMetric, ...ofSeveral }[name];
  assert.ok(run, `there is no case ${name}`);
  await run({ open, json, axe, directory, complaints });
  assert.deepEqual(complaints, []);
} finally {
  await browser.close();
}
