// Looks at pages in Chromium: `node page.mjs NODE_MODULES`. Each line of its input is a directory and a case, with a zero between them;
// the answer is what made it fail, if it did, and END. It ends when its input does.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";
import { cases as ofOneMetric } from "./page-cases.mjs";
import { cases as ofSeveral } from "./page-metrics.mjs";

const modules = process.argv[2];
const { chromium } = createRequire(`${resolve(modules)}/`)("playwright-core");
const axe = readFileSync(join(modules, "axe-core/axe.min.js"), "utf8");

/** A case has contexts of its own, as if it were alone in the browser. */
const look = async (browser, directory, name) => {
  const file = pathToFileURL(join(directory, "page.html")).href;
  const complaints = [];
  const contexts = [];
  const open = async (options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1366, height: 768 }, colorScheme: "light", ...options });
    contexts.push(context);
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
  const run = { ...ofOneMetric, ...ofSeveral }[name];
  assert.ok(run, `there is no case ${name}`);
  await run({ open, json, axe, directory, complaints });
  assert.deepEqual(complaints, []);
  for (const context of contexts) await context.close();
};

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  // Chromium's sandbox does not run as root.
  args: process.getuid() === 0 ? ["--no-sandbox"] : [],
});
try {
  console.log("READY");
  for await (const line of createInterface({ input: process.stdin })) {
    const [directory, name] = line.split("\0");
    try {
      await look(browser, directory, name);
      console.log("END good");
    } catch (error) {
      // Whoever asked takes another browser from here on.
      console.log(`${error.stack}\nEND failed`);
      break;
    }
  }
} finally {
  await browser.close();
}
