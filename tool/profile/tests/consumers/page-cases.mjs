// What is asked of the page, by case: see tool/profile/tests/html/main.rs.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";

/** The rows of a table, as their attributes say. */
export const rows = (page, id) =>
  page.$$eval(`table#${id} tbody tr`, (found) => found.map((row) => ({ ...row.dataset, text: row.innerText })));

/** Only rows that can be seen are there: this goes through all of them. */
export const allRows = async (page, id) => {
  const known = new Map();
  const scroller = page.locator(`.scroller:has(> table#${id})`);
  const count = Number(await page.getAttribute(`table#${id}`, "aria-rowcount")) - 1;
  for (let top = 0; known.size < count; top += 200) {
    await scroller.evaluate((element, top) => (element.scrollTop = top), top);
    await page.waitForTimeout(30);
    const found = await page.$$eval(`table#${id} tbody tr`, (rows) =>
      rows.map((row) => [row.getAttribute("aria-rowindex"), { ...row.dataset, level: row.getAttribute("aria-level") }]),
    );
    for (const [index, row] of found) known.set(index, row);
    assert.ok(top < 200 * (count + 10), "the table ends");
  }
  return [...known.values()];
};

export const view = (page, name) => page.click(`#tab-${name}`);
const numbers = (row) => [row.calls, row.thrown, row.selfNs, row.totalNs, row.errorNs, row.totalErrorNs].map(Number);
const expectedNumbers = (row) => [row.calls, row.thrown, row.self_ns, row.total_ns, row.error_ns, row.total_error_ns];
export const sorted = (list) => list.map((item) => JSON.stringify(item)).sort();

const sameFlat = async (page, flat) => {
  const shown = await allRows(page, "flat");
  assert.deepEqual(
    sorted(shown.map((row) => [row.method, ...numbers(row)])),
    sorted(flat.map((row) => [row.method, ...expectedNumbers(row)])),
  );
};

/** The tree as JSON has it: nodes that differ only in the class loader are two there and two here. */
const sameTree = async (page, nodes) => {
  await page.click("#open-all");
  const shown = await allRows(page, "tree");
  assert.deepEqual(
    sorted(shown.map((row) => [Number(row.node), row.method, ...numbers(row)])),
    sorted(nodes.map((row) => [row.id, row.method, ...expectedNumbers(row)])),
  );
  const levels = new Map();
  for (const node of nodes) levels.set(node.id, node.parent === null ? 1 : levels.get(node.parent) + 1);
  for (const row of shown) assert.equal(Number(row.level), levels.get(Number(row.node)));
};

const sameStanzas = async (page, stanzas) => {
  for (const stanza of stanzas) {
    await view(page, "methods");
    await page.click(`table#flat tbody tr[data-method=${JSON.stringify(stanza.self.method)}] .label`);
    await view(page, "callers");
    for (const [table, arcs] of [["callers", stanza.parents], ["callees", stanza.children]]) {
      const shown = await rows(page, table);
      const expected = arcs.map((arc) => [arc.method ?? "", arc.calls, arc.thrown, arc.base_ns, arc.cum_ns, arc.base_error_ns, arc.cum_error_ns]);
      assert.deepEqual(sorted(shown.map((row) => [row.method, ...numbers(row)])), sorted(expected), `${table} of ${stanza.self.method}`);
    }
  }
};

const selectRow = (page, table, name) => page.click(`table#${table} tbody tr:has-text("${name}") td.name .label`);
export const info = (page, name) => page.textContent(`#node dd[data-name="${name}"]`);
export const selectedNode = async (page) => Number(await page.getAttribute("#node", "data-node"));
const drawings = (page) => page.getAttribute("#flame", "data-drawings").then(Number);
export const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Where a frame is: found by asking the page what is under the pointer. */
const zoomRoot = async (page) => {
  await settled(page);
  return Number(await page.getAttribute("#flame", "data-root"));
};

export const noSidewaysScrolling = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

const WIDTHS = [
  [390, 844],
  [1366, 768],
  [2560, 1300],
];

export const cases = {
  async flat({ open, json }) {
    const page = await open();
    await view(page, "methods");
    await sameFlat(page, json("flat").flat);
    // Of a method that was dropped, its name says until when it was recorded.
    const until = await page.$$eval("table#flat tbody tr[data-until-ns]", (found) => found.map((row) => [row.dataset.method, row.dataset.untilNs, row.querySelector(".label").textContent]));
    assert.deepEqual(until, [["com.acme.tax.Rates.of(I)D", "2100000000", "com.acme.tax.Rates.of(int) (calls until 2.1 s)"]]);
    assert.deepEqual(json("flat").flat.filter((row) => row.until_ns).map((row) => row.until_ns), [2100000000]);
    const [first] = await rows(page, "flat");
    const cells = await page.$$eval("table#flat tbody tr:first-child td", (found) =>
      found.map((cell) => [cell.dataset.column, cell.dataset.value]),
    );
    assert.deepEqual(Object.fromEntries(cells).self, first.selfNs);
    // Sorted by self time, then by what is asked for.
    assert.deepEqual((await rows(page, "flat")).map((row) => -row.selfNs), (await rows(page, "flat")).map((row) => -row.selfNs).sort((a, b) => a - b));
    await page.click('table#flat th[data-column="calls"] button');
    assert.equal(await page.getAttribute('table#flat th[data-column="calls"]', "aria-sort"), "descending");
    const calls = (await rows(page, "flat")).map((row) => Number(row.calls));
    assert.deepEqual(calls, [...calls].sort((a, b) => b - a));
    // A time that is smaller than its error is marked.
    const doubtful = await page.$$eval("table#flat tbody tr", (found) =>
      found.filter((row) => Number(row.dataset.selfNs) < Number(row.dataset.errorNs)).map((row) => row.querySelector('[data-column="self"]').textContent),
    );
    assert.ok(doubtful.length > 0 && doubtful.every((text) => text.startsWith("<")), String(doubtful));
  },

  async tree({ open, json }) {
    const page = await open();
    await view(page, "tree");
    await sameTree(page, json("tree").nodes);
  },

  async callers({ open, json }) {
    const page = await open();
    await sameStanzas(page, json("callers").stanzas);
    // A caller is gone to by a click, or by Enter.
    await view(page, "methods");
    await selectRow(page, "flat", "Parser.parseRow");
    await view(page, "callers");
    await page.click('table#callers tbody tr:has-text("Parser.parse(String)") .label');
    assert.match(await page.textContent("#callers-of"), /Parser\.parse\(String\)/);
    await page.focus("#callees");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    assert.match(await page.textContent("#callers-of"), /Parser\.parseRow\(int\)/);
  },

  async threads({ open, json }) {
    const page = await open();
    const threads = json("tree").threads;
    const names = await page.$$eval("#thread option", (options) => options.map((option) => option.textContent));
    assert.deepEqual(names, ["All threads (2)", ...threads.map((thread) => `${thread.name} (${thread.id})`)]);
    for (const [index, thread] of threads.entries()) {
      await page.selectOption("#thread", String(index + 1));
      await view(page, "methods");
      await sameFlat(page, json(`flat-${thread.id}`).flat);
      await view(page, "tree");
      await sameTree(page, json(`tree-${thread.id}`).nodes);
    }
    await page.selectOption("#thread", "0");
    await sameTree(page, json("tree").nodes);
  },

  /** A metric takes the place of time, everywhere. */
  async metric({ open, json }) {
    const page = await open();
    const choices = await page.$$eval("#width option", (options) => options.map((option) => [option.value, option.textContent]));
    const metrics = json("flat").metrics;
    assert.deepEqual(choices, metrics.map(({ id, title }) => [id, title]));
    const own = { calls: (row) => row.calls, thrown: (row) => row.thrown };
    for (const { id, unit } of metrics.slice(1)) {
      await page.selectOption("#width", id);
      await view(page, "methods");
      const shown = await allRows(page, "flat");
      const key = unit === "nanoseconds" ? "selfNs" : "self";
      const of = own[id] ?? ((row) => row.metrics[id].self);
      assert.deepEqual(
        sorted(shown.map((row) => [row.method, Number(row[key])])),
        sorted(json("flat").flat.map((row) => [row.method, of(row)])),
        id,
      );
    }
    await page.selectOption("#width", metrics[0].id);
    await sameFlat(page, json("flat").flat);
  },

  async search({ open, json }) {
    const page = await open();
    await view(page, "methods");
    await page.fill("input[type=search]", "PARSER.");
    const machines = json("flat").flat.map((row) => row.method).filter((method) => method.includes("Parser."));
    assert.deepEqual((await rows(page, "flat")).map((row) => row.method).sort(), machines.sort());
    assert.match(await page.textContent("#search-result"), /^2 methods, [\d.]+ ms \(\d+\.\d%\)$/);
    assert.equal(await page.textContent("table#flat tbody mark"), "Parser.");
    // By the name for machines, as JSON has it; and in the form of a root.
    for (const search of ["com.acme.Item.price(I)J", "Item::price", "acme.*price"]) {
      await page.fill("input[type=search]", search);
      assert.deepEqual((await rows(page, "flat")).map((row) => row.method), ["com.acme.Item.price(I)J"], search);
    }
    await page.fill("input[type=search]", "nowhere");
    assert.equal(await page.textContent("#search-result"), "nothing found");
    assert.equal((await rows(page, "flat")).length, 0);
    // The table is there for a script that never opens its tab, too.
    await view(page, "flame");
    await page.fill("input[type=search]", "checkout");
    assert.equal((await rows(page, "flat")).length, 1);
    await page.fill("input[type=search]", "");
    assert.equal((await rows(page, "flat")).length, json("flat").flat.length);
  },

  async zoom({ open, json }) {
    const page = await open();
    const nodes = json("tree").nodes;
    const box = await page.locator("#flame").boundingBox();
    assert.equal(await zoomRoot(page), -1);
    const all = Number(await page.getAttribute("#flame", "data-frames"));
    // The root's frame is the widest of the first row.
    await page.mouse.click(box.x + 20, box.y + 10);
    const root = nodes.filter((node) => node.parent === null).sort((a, b) => b.total_ns - a.total_ns)[0];
    assert.equal(await selectedNode(page), root.id);
    const callee = nodes.filter((node) => node.parent === root.id).sort((a, b) => b.total_ns - a.total_ns)[0];
    await page.mouse.dblclick(box.x + 20, box.y + 30);
    assert.equal(await zoomRoot(page), callee.id);
    assert.ok(Number(await page.getAttribute("#flame", "data-frames")) < all);
    await view(page, "tree");
    assert.equal((await rows(page, "tree"))[0].node, String(callee.id), "the tree has the same root");
    await view(page, "flame");
    await page.click("#zoom-up");
    assert.equal(await zoomRoot(page), root.id);
    await page.click("#zoom-reset");
    assert.equal(await zoomRoot(page), -1);
    // Flames grow upwards: the root is at the bottom then.
    await page.click("#flames");
    await settled(page);
    await page.mouse.click(box.x + 20, box.y + box.height - 10);
    assert.equal(await selectedNode(page), root.id);
    await page.mouse.move(box.x + 20, box.y + box.height - 30);
    assert.match(await page.textContent(".tip"), /total .* self, .* calls/);
  },

  async levels({ open, json }) {
    const page = await open();
    await view(page, "tree");
    const nodes = json("tree").nodes;
    const level = (node) => (node.parent === null ? 1 : 1 + level(nodes[node.parent]));
    const shown = async () => (await rows(page, "tree")).map((row) => Number(row.node)).sort((a, b) => a - b);
    const upTo = (deepest) => nodes.filter((node) => level(node) <= deepest).map((node) => node.id);
    assert.deepEqual(await shown(), upTo(2), "roots and their callees at first");
    await page.click("#open-level");
    assert.deepEqual(await shown(), upTo(3));
    await page.click("#open-level");
    assert.deepEqual(await shown(), upTo(4));
    await page.click("#close-level");
    assert.deepEqual(await shown(), upTo(3));
    await page.click("#close-all");
    assert.deepEqual(await shown(), upTo(1));
    const [first] = await rows(page, "tree");
    await page.click(`table#tree tr[data-node="${first.node}"] .twist`);
    const below = nodes.filter((node) => level(node) === 1 || node.parent === Number(first.node)).map((node) => node.id);
    assert.deepEqual(await shown(), below);
    assert.equal(await page.getAttribute(`table#tree tr[data-node="${first.node}"]`, "aria-expanded"), "true");
    await page.click("#open-all");
    assert.deepEqual(await shown(), nodes.map((node) => node.id));
  },

  async information({ open, json }) {
    const page = await open();
    const { nodes, statistics } = json("tree");
    const method = statistics[0].method;
    const node = nodes.filter((node) => node.method === method).sort((a, b) => b.total_ns - a.total_ns)[0];
    await view(page, "methods");
    await page.click(`table#flat tbody tr[data-method="${method}"] .label`);
    assert.equal(await selectedNode(page), node.id);
    const value = (name) => page.getAttribute(`#node dd[data-name="${name}"]`, "data-value");
    assert.equal(await info(page, "Method name"), "com.acme.text.Parser.parse(String)");
    assert.equal(await value("Name for machines"), method);
    assert.equal(await info(page, "Caller name"), "com.acme.Shop.checkout(Cart)");
    assert.match(await info(page, "JVM"), /^com\.acme\.Shop .*\(pid 4711, JDK 25\.0\.1\) on shop-1$/);
    assert.match(await info(page, "Thread"), /^worker-1 \(31\): 3 calls, /);
    assert.equal(Number(await value("Calls")), node.calls);
    assert.equal(Number(await value("Minimum time")), statistics[0].min_ns);
    assert.equal(Number(await value("Maximum time")), statistics[0].max_ns);
    assert.equal(Number(await value("Average time")), Math.round(node.total_ns / node.calls));
    assert.equal(Number(await value("Standard deviation")), statistics[0].sd_ns);
    const all = json("flat").flat.find((row) => row.method === method);
    assert.equal(Number(await value("Number of calls")), all.calls);
    // The way from the root, each step a link to it.
    assert.deepEqual(await page.$$eval("#node .path li", (steps) => steps.map((step) => step.textContent)), ["com.acme.Shop.checkout(Cart)", "com.acme.text.Parser.parse(String)"]);
    await page.click("#node .path li:first-child button");
    assert.equal(await info(page, "Caller name"), "none: it is a root");
  },

  async colours({ open }) {
    const page = await open();
    const keys = () => page.$$eval("#key li", (items) => items.map((item) => item.textContent));
    assert.ok((await keys()).includes("com.acme.text"));
    await view(page, "tree");
    for (const [mapping, expected] of [["thread", "worker-1 (31)"], ["self", /^up to /], ["calls", /^above /], ["error", /more than the time itself/], ["cpu", /too few samples/], ["class", "com.acme.text.Parser"]]) {
      await settled(page);
      const before = await drawings(page);
      await page.selectOption("#colour", mapping);
      assert.equal(await page.getAttribute("#key", "data-mapping"), mapping);
      const found = await keys();
      assert.ok(found.some((text) => (typeof expected === "string" ? text === expected : expected.test(text))), String(found));
      await view(page, "flame");
      await settled(page);
      assert.ok((await drawings(page)) > before);
      await view(page, "tree");
    }
    // By a query, the mapper's other use: what it finds stands out, with a sign too, in one thread as in all.
    await page.selectOption("#colour", "query");
    await page.fill("#query", "method ~ Parser.parse && level > 2");
    await page.click("#find-next");
    assert.deepEqual(await keys(), ["others", "method ~ Parser.parse && level > 2"]);
    await page.click("#open-all");
    for (const [thread, count] of [["0", 3], ["1", 1], ["2", 2]]) {
      await page.selectOption("#thread", thread);
      await page.click("#open-all");
      assert.equal(await page.locator('table#tree .swatch[title="Query: found"]').count(), count, thread);
    }
    await page.selectOption("#thread", "0");
    // What the colour stands for is also said.
    await page.selectOption("#colour", "thread");
    await page.click("#open-all");
    const titles = await page.$$eval("table#tree tbody .swatch", (found) => found.map((swatch) => swatch.title));
    assert.ok(titles.includes("Thread: worker-1 (31)") && titles.includes("Thread: several threads"), String(titles));
    const colours = await page.$$eval("table#tree tbody .swatch", (found) => new Set(found.map((swatch) => swatch.style.background)).size);
    assert.equal(colours, 3);
  },

  async find({ open, json }) {
    const page = await open();
    const nodes = json("tree").nodes;
    const children = (id) => nodes.filter((node) => node.parent === id).sort((a, b) => b.total_ns - a.total_ns || a.id - b.id);
    const depth = (id) => children(id).flatMap((node) => [node, ...depth(node.id)]);
    const breadth = [];
    for (let level = children(null); level.length > 0; level = level.flatMap((node) => children(node.id))) breadth.push(...level);
    const isMeant = (node) => node.self_ns > 1e6 && node.calls < 1000 && /parse|total/i.test(node.method);
    for (const [order, all] of [["depth", depth(null)], ["breadth", breadth]]) {
      await page.reload();
      await page.waitForSelector("#app[data-ready]");
      await page.selectOption("#find-order", order);
      await page.fill("#query", "self > 1ms && calls < 1k && (method ~ parse || method ~ total)");
      const expected = all.filter(isMeant).map((node) => node.id);
      assert.ok(expected.length > 2);
      const found = [];
      for (const id of [...expected, expected[0]]) {
        await page.click("#find-next");
        found.push(await selectedNode(page));
        assert.match(await page.textContent("#find-result"), new RegExp(`^${expected.indexOf(id) + 1} of ${expected.length}$`));
      }
      assert.deepEqual(found, [...expected, expected[0]], order);
    }
    // What is found is shown in the tree, opened down to it.
    await view(page, "tree");
    await page.fill("#query", "machine = 'com.acme.text.Parser.parseRow(I)V' && level > 3");
    await page.press("#query", "Enter");
    assert.equal(await page.textContent("table#tree tr.selected .label"), "com.acme.text.Parser.parseRow(int)");
  },

  async queries({ open }) {
    const page = await open();
    for (const [query, complaint] of [
      ["", /^column 1: say what to compare: method, machine/],
      ["self >", /^column 7: say what `self` is compared with/],
      ["selv > 1", /^column 1: there is no `selv`; there is method/],
      ["self ~~ 1", /^column 7: /],
      ["self > 1parsec", /^column 8: `parsec` is no unit/],
      ["self > parse", /^column 8: `parse` is no number/],
      ["(self > 1", /^column 10: a `\)` is missing/],
      ["self > 1 calls < 2", /^column 10: write && or \|\| before this/],
      ["self > 1 # 2", /^column 10: /],
      ["calls < 0", /^no node is like that$/],
    ]) {
      await page.fill("#query", query);
      await page.click("#find-next");
      assert.match(await page.textContent("#find-result"), complaint, query);
      assert.equal(await page.getAttribute("#query", "aria-invalid"), "true");
    }
    for (const query of ["!(self > 1) or calls >= 1", "not thrown = 0 and share > 1%", 'method ~ "acme.Item.price(int)"', "thread ~ worker", "package = com.acme", "cpu > 10% || level == 1", "method !~ acme"]) {
      await page.fill("#query", query);
      await page.click("#find-next");
      assert.match(await page.textContent("#find-result"), /^1 of \d+$|^\d+ of \d+$/, query);
    }
  },

  async keyboard({ open, json }) {
    const page = await open();
    const seen = [];
    // From control to control: each can be reached, and is seen to be.
    for (let step = 0; step < 40; step++) {
      await page.keyboard.press("Tab");
      const id = await page.evaluate(() => {
        const { activeElement: element } = document;
        const style = getComputedStyle(element);
        const isSeen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
        return element === document.body ? "" : isSeen ? element.id || element.tagName : `${element.id} has no visible focus`;
      });
      if (id === "") break;
      seen.push(id);
    }
    const expected = ["theme", "search", "thread", "colour", "query", "find-order", "find-next", "tab-flame", "zoom-in", "zoom-up", "zoom-reset", "flames", "flame"];
    assert.deepEqual(seen.filter((id) => expected.includes(id)), expected);
    assert.deepEqual(seen.filter((id) => id.includes("no visible")), []);
    // The flame graph.
    const nodes = json("tree").nodes;
    const heaviest = (parent) => nodes.filter((node) => node.parent === parent).sort((a, b) => b.total_ns - a.total_ns);
    await page.focus("#flame");
    await page.keyboard.press("ArrowDown");
    const [root] = heaviest(null);
    assert.equal(await selectedNode(page), root.id);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    assert.equal(await selectedNode(page), heaviest(root.id)[1].id);
    assert.match(await page.textContent("#announcer"), /total .* self/);
    await page.keyboard.press("Enter");
    assert.equal(await zoomRoot(page), heaviest(root.id)[1].id);
    await page.keyboard.press("Backspace");
    assert.equal(await zoomRoot(page), root.id);
    await page.keyboard.press("Escape");
    assert.equal(await zoomRoot(page), -1);
    // The tabs, and the tree.
    await page.focus("#tab-flame");
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.evaluate(() => document.activeElement.id), "tab-tree");
    await page.keyboard.press("End");
    assert.equal(await page.evaluate(() => document.activeElement.id), "tab-about");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await page.focus("#tree");
    await page.keyboard.press("Home");
    assert.equal(await selectedNode(page), root.id);
    const active = () => page.evaluate(() => document.getElementById(document.querySelector("#tree").getAttribute("aria-activedescendant")));
    assert.notEqual(await active(), null);
    await page.keyboard.press("ArrowRight");
    assert.equal(await selectedNode(page), heaviest(root.id)[0].id, "an open node's first callee");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    assert.equal(await page.getAttribute("#tree tr.selected", "aria-expanded"), "false");
    await page.keyboard.press("*");
    assert.equal(await page.getAttribute("#tree tr.selected", "aria-expanded"), "true");
    await page.keyboard.press("o");
    assert.ok((await rows(page, "tree")).some((row) => nodes[Number(row.node)].parent === heaviest(root.id)[0].id));
    await page.keyboard.press("End");
    await page.keyboard.press("z");
    assert.equal((await rows(page, "tree")).length >= 1, true);
    await page.keyboard.press("r");
    // The table of methods, and from there to callers.
    await view(page, "methods");
    await page.focus("#flat");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    const second = (await rows(page, "flat"))[1];
    assert.equal(await page.getAttribute("#flat tr.selected", "data-method"), second.method);
    await page.keyboard.press("Enter");
    assert.equal(await page.getAttribute("#callers-of", "data-method"), second.method);
  },

  async hostile({ open, json, complaints }) {
    const page = await open();
    const hostile = "</script><img src=x onerror=alert(1)><!--";
    assert.equal(await page.title(), `com.acme.Shop ${hostile} (pid 4711): com.acme.Shop::checkout`);
    for (const name of ["tree", "methods", "callers", "about", "flame"]) {
      await view(page, name);
      if (name === "tree") await page.click("#open-all");
      if (name === "methods") await page.click(`table#flat tbody tr:has-text("onerror") .label`);
      assert.equal(await page.locator("img, iframe, object, embed, link").count(), 0, name);
      assert.equal(await page.locator("script").count(), 1);
    }
    assert.equal(await info(page, "Method name"), `${hostile}.m()`);
    assert.ok((await page.textContent("#thread")).includes(hostile));
    // The policy forbids what the page never does.
    const isBlocked = await page.evaluate(() =>
      new Promise((done) => {
        document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
        const image = new Image();
        image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACw=";
      }),
    );
    assert.equal(isBlocked, "img-src");
    const [complaint] = complaints.splice(0);
    assert.match(complaint, /violates the following Content Security Policy directive/);
    assert.equal(json("tree").threads[1].name, `pool ${hostile}`);
  },

  async about({ open }) {
    const page = await open();
    const warnings = await page.textContent("#warnings");
    assert.ok(warnings.includes("17 events were lost") && warnings.includes("the target ended"), warnings);
    await view(page, "about");
    const text = await page.innerText("#panel-about");
    for (const part of [
      "recorded 2027-01-15T08:00:00Z on shop-1 (2 processors) by Headwater 0.1.0",
      "command  headwater profile 4711",
      "root com.acme.Shop::checkout: entered 12 times; 1 thread in it since before the profile, returned (±12.50 ms)",
      "events    2,469,214 recorded, 17 lost, 1 frame healed",
      "1 because its code is too large: com.acme.Old.run()V",
      "probes    24.2 ns (±0.1) in the method and 26.5 ns (±0.2) in its caller, for each call",
      "accuracy  com.acme.Shop.checkout(Cart): charged 1.029 ms a call; 3 held-out calls 1.000 ms (±12.50 us)",
      "hotswaps  4 batches, 9 classes; paused 31.00 ms altogether, 12.00 ms at most",
      "waits     4 times for hotswap: 40.00 ms",
      "at 2.1 s, after 1,234,569 calls, 2.400 ms self; its probes cost 25.0%: com.acme.tax.Rates.of(int)",
      "< marks times of which only a bound is known: their uncertainty is larger",
    ]) {
      assert.ok(text.includes(part), `${part} is not in\n${text}`);
    }
    assert.equal(await page.getAttribute("table#skipped tbody tr", "data-method"), "com.acme.Old.run()V");
    assert.equal(await page.getAttribute("table#statistics tbody tr", "data-count"), "15");
  },

  async locks({ open, json }) {
    const page = await open();
    const { locks } = json("tree");
    await page.click("#tab-locks");
    const shown = await page.$$eval("#locks details.lock", (all) => all.map(({ dataset }) => [dataset.class, Number(dataset.waits), Number(dataset.blockedNs)]));
    assert.deepEqual(shown, locks.contended.map((lock) => [lock.class, lock.waits, lock.blocked_ns]));
    const place = locks.contended[0].places[0];
    const text = await page.textContent("#locks details.lock .place");
    for (const part of ["after worker-1 had left it", "Held meanwhile by worker-1, seen 2 of 3 times", "com.acme.Cart.total(Cart.java:12)"]) {
      assert.ok(text.includes(part), text);
    }
    const end = await page.textContent("#locks");
    assert.ok(end.includes("waited for com.acme.Till <0x9> at the end") && end.includes(locks.limits[0]), end);
    // To where it was waited, in the tree of all threads.
    await page.click("#locks details.lock .place button");
    assert.equal(await page.getAttribute("#tab-tree", "aria-selected"), "true");
    assert.equal(await page.getAttribute("#node", "data-node"), String(place.node));
  },

  async all_threads({ open, json, axe }) {
    const page = await open();
    const { threads, groups, deadlocks, warnings } = json("threads");
    assert.equal(await page.getAttribute("#app", "data-kind"), "threads");
    const head = await page.textContent("header");
    for (const part of ["com.acme.Shop", "pid 4711", "3 threads, 2 different stacks", warnings[0]]) assert.ok(head.includes(part), head);
    const wait = await page.$$eval("#stacks .deadlock li", (all) => all.map(({ dataset }) => Number(dataset.thread)));
    assert.deepEqual(wait, deadlocks[0].waits.map(({ thread }) => thread));
    assert.ok((await page.textContent("#blockers")).includes("1 thread waits for deadlock 1"));
    const shown = () => page.$$eval("#stacks details", (all) => all.map(({ dataset }) => Number(dataset.threads)));
    assert.deepEqual(await shown(), groups.map(({ threads }) => threads.length));
    // A stack is made when it is looked at, with its locks where one thread has it.
    await page.click("#stacks details summary");
    const stack = await page.textContent("#stacks details[open]");
    for (const part of [groups[0].stack[1], "waits for com.acme.Till <0x7>", "holds com.acme.Cart <0x9>"]) assert.ok(stack.includes(part), stack);
    await page.fill("#search", "Till.lock");
    await page.waitForFunction(() => document.querySelector("#search-result").textContent === "2 of 3 threads");
    assert.deepEqual(await shown(), [2]);
    await page.click("#tab-threads");
    assert.deepEqual(await page.$$eval("#thread-table tbody tr", (rows) => rows.map(({ dataset }) => Number(dataset.thread))), [1, 2]);
    await page.fill("#search", "");
    await page.waitForFunction(() => document.querySelectorAll("#thread-table tbody tr").length === 3);
    await page.click('#thread-table th[data-column="cpu"] button');
    const order = await page.$$eval("#thread-table tbody tr", (rows) => rows.map(({ dataset }) => Number(dataset.thread)));
    assert.deepEqual(order, threads.map(({ id }) => id).reverse(), "by CPU time");
    await page.dblclick('#thread-table tbody tr[data-thread="0"]');
    assert.equal(await page.getAttribute("#tab-stacks", "aria-selected"), "true");
    assert.ok(await page.$('#stacks details[data-group="0"][open]'));
    const found = await page.evaluate(`${axe}; axe.run({ resultTypes: ["violations"] })`);
    assert.deepEqual(found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), []);
  },

  async tracks({ open, json }) {
    const page = await open();
    const { tracks } = json("tree");
    await page.click("#tab-tracks");
    assert.deepEqual(await page.$$eval("#tracks .lane", (all) => all.map(({ dataset }) => dataset.track)), tracks.map(({ id }) => id));
    for (const { id, slices } of tracks) {
      const [lane, table] = [`#tracks .lane[data-track="${id}"]`, `#tracks table#${id}`];
      assert.equal(await page.$$eval(`${lane} .slice`, (all) => all.length), slices.length);
      const values = await page.$$eval(`${table} tbody tr`, (rows) =>
        rows.map((row) => [...row.querySelectorAll("td")].slice(0, -1).map(({ dataset }) => (dataset.value === undefined ? null : Number(dataset.value)))),
      );
      assert.deepEqual(values, slices.map(({ start_ns, duration_ns, amounts }) => [start_ns, duration_ns, ...amounts]));
    }
    const title = await page.getAttribute('#tracks .lane[data-track="collections"] .slice', "title");
    assert.equal(title, "G1 Evacuation Pause: 1.200 ms at 5.000 us, heap before 300.0 MiB, heap after 40.00 MiB");
  },

  async themes({ open }) {
    const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const [light, dark] = ["rgb(255, 255, 255)", "rgb(20, 23, 28)"];
    const page = await open({ colorScheme: "dark" });
    assert.equal(await ground(page), dark);
    await page.emulateMedia({ colorScheme: "light" });
    assert.equal(await ground(page), light);
    await settled(page);
    const before = await drawings(page);
    await page.selectOption("#theme", "dark");
    assert.equal(await ground(page), dark);
    await settled(page);
    assert.ok((await drawings(page)) > before, "the canvas too");
    await page.reload();
    await page.waitForSelector("#app[data-ready]");
    assert.equal(await ground(page), dark, "the choice is kept");
  },

  async widths({ open, directory }) {
    // To be looked at: HEADWATER_SCREENSHOTS names where.
    const keep = process.env.HEADWATER_SCREENSHOTS;
    if (keep) mkdirSync(keep, { recursive: true });
    for (const [width, height] of WIDTHS) {
      for (const colorScheme of ["light", "dark"]) {
        const isPhone = width < 500;
        const page = await open({ viewport: { width, height }, colorScheme, hasTouch: isPhone, isMobile: isPhone });
        const kind = await page.getAttribute("#app", "data-kind");
        for (const name of ["flame", "tree", "methods", "callers", "scatter", "about"]) {
          await view(page, name);
          if (name === "tree") await page.click("#open-level");
          if (name === "methods") await page.click("table#flat tbody tr .label");
          await settled(page);
          assert.equal(await noSidewaysScrolling(page), 0, `${name} at ${width}`);
          const file = join(keep ?? directory, `${kind}-${width}-${colorScheme}-${name}.png`);
          const picture = await page.screenshot({ path: file, fullPage: isPhone });
          assert.ok(picture.length > 5_000);
        }
        await page.context().close();
      }
    }
  },

  async axe({ open, axe }) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await open({ colorScheme });
      for (const name of ["flame", "tree", "methods", "callers", "scatter", "about"]) {
        await view(page, name);
        if (name === "methods") await page.click("table#flat tbody tr .label");
        // The policy lets no script in; a debugger's may.
        const found = await page.evaluate(`${axe}; axe.run({ resultTypes: ["violations"] })`);
        const faults = found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join("\n")}`);
        assert.deepEqual(faults, [], `${name}, ${colorScheme}`);
      }
    }
  },

  async handed({ open, json }) {
    const page = await open();
    const { nodes } = json("tree");
    const links = nodes.filter((node) => node.link).map((node) => node.id);
    assert.equal(links.length, 2);
    await view(page, "methods");
    await sameFlat(page, json("flat").flat);
    await view(page, "tree");
    await sameTree(page, nodes);
    const shown = await page.$$eval("table#tree tbody tr[data-link=thread]", (found) => found.map((row) => [Number(row.dataset.node), row.querySelector(".label").textContent]));
    assert.deepEqual(shown.map(([node]) => node).sort((a, b) => a - b), links);
    assert.ok(shown.every(([, label]) => label.startsWith("[started] ")), String(shown));
    await sameStanzas(page, json("callers").stanzas);
  },

  async empty({ open }) {
    const page = await open();
    for (const name of ["tree", "methods", "callers", "about", "flame"]) await view(page, name);
    assert.equal((await rows(page, "flat")).length, 0);
    await page.fill("#search", "x");
    await page.fill("#query", "calls > 0");
    await page.click("#find-next");
    assert.equal(await page.textContent("#find-result"), "no node is like that");
    await page.focus("#flame");
    await page.keyboard.press("ArrowDown");
  },

  async large({ open, json }) {
    const page = await open();
    const nodes = json("tree").nodes;
    assert.ok(nodes.length >= 200_000);
    const made = () => page.locator("table tbody tr").count();
    const frames = async () => {
      await settled(page);
      return Number(await page.getAttribute("#flame", "data-frames"));
    };
    // What is drawn, and how many rows there are, goes with what can be seen, not with the tree.
    assert.ok((await frames()) < 20_000, String(await frames()));
    assert.ok((await made()) < 400, String(await made()));
    await view(page, "tree");
    await page.click("#open-all");
    assert.equal(await page.getAttribute("#tree", "aria-rowcount"), String(nodes.length + 1));
    assert.ok((await made()) < 400, String(await made()));
    await page.focus("#tree");
    await page.keyboard.press("End");
    assert.ok((await made()) < 400, String(await made()));
    const last = await page.evaluate(() => {
      const row = document.querySelector("#tree tr.selected");
      const [own, box] = [row.getBoundingClientRect(), row.closest(".scroller").getBoundingClientRect()];
      return { index: row.getAttribute("aria-rowindex"), isSeen: own.bottom <= box.bottom + 1 && own.top >= box.top };
    });
    assert.deepEqual(last, { index: String(nodes.length + 1), isSeen: true });
    // A search changes no row but those that are seen, and draws once.
    await view(page, "methods");
    for (const text of ["t", "ty", "type7.", "type7.method1"]) {
      await page.fill("#search", text);
      assert.ok((await made()) < 400);
    }
    const found = json("flat").flat.filter((row) => row.method.toLowerCase().includes("type7.method1"));
    assert.deepEqual((await rows(page, "flat")).map((row) => [row.method, ...numbers(row)]).sort(), found.map((row) => [row.method, ...expectedNumbers(row)]).sort());
    await view(page, "flame");
    await settled(page);
    const before = await drawings(page);
    await page.fill("#search", "type8.");
    await settled(page);
    assert.equal(await drawings(page), before + 1);
    // The deepest node, by a query.
    const level = [];
    for (const node of nodes) level.push(node.parent === null ? 1 : level[node.parent] + 1);
    const deepest = level.reduce((a, b) => Math.max(a, b), 0);
    await page.fill("#query", `level = ${deepest}`);
    await page.click("#find-next");
    assert.equal(level[await selectedNode(page)], deepest);
    // What the query's field shows while it has the focus moves nothing: a click would miss what goes away under it.
    const place = () => page.evaluate(() => document.querySelector("#zoom-in").getBoundingClientRect().top);
    const placed = await place();
    await page.focus("#query");
    assert.equal(await place(), placed);
    await page.click("#zoom-in");
    assert.equal(await zoomRoot(page), await selectedNode(page));
    await page.click("#zoom-reset");
    for (const mapping of ["thread", "self", "error"]) await page.selectOption("#colour", mapping);
    assert.ok((await frames()) < 20_000);
  },

  async changes({ open, json }) {
    const page = await open();
    const diff = json("diff");
    await page.check("#unchanged");
    const expected = (row) => [
      row.presence,
      ...["self", "total"].flatMap((quantity) => {
        const { before_ns, after_ns, change_ns, error_ns, changed } = row[quantity];
        return [before_ns, after_ns, change_ns, error_ns, changed];
      }),
      ...[row.calls.before, row.calls.after, row.calls.change, row.calls.changed],
    ];
    const shown = (row) => [
      row.presence,
      ...["self", "total"].flatMap((quantity) => [
        ...["Before", "After", "Change", "Error"].map((part) => Number(row[`${quantity}${part}Ns`])),
        row[`${quantity}Changed`] === "true",
      ]),
      ...[Number(row.callsBefore), Number(row.callsAfter), Number(row.callsChange), row.callsChanged === "true"],
    ];
    await view(page, "methods");
    assert.deepEqual(
      sorted((await allRows(page, "flat")).map((row) => [row.method, ...shown(row)])),
      sorted(diff.methods.map((row) => [row.method, ...expected(row)])),
    );
    await view(page, "tree");
    await page.click("#open-all");
    assert.deepEqual(
      sorted((await allRows(page, "tree")).map((row) => [Number(row.node), row.method, ...shown(row)])),
      sorted(diff.nodes.map((row) => [row.id, row.method, ...expected(row)])),
    );
  },

  async unchanged({ open, json }) {
    const page = await open();
    const diff = json("diff");
    const isChanged = (row) => row.self.changed || row.total.changed || row.calls.changed;
    const changed = diff.methods.filter(isChanged).map((row) => row.method).sort();
    assert.ok(changed.length > 1 && changed.length < diff.methods.length, `${changed.length} of ${diff.methods.length}`);
    await view(page, "methods");
    assert.deepEqual((await allRows(page, "flat")).map((row) => row.method).sort(), changed);
    assert.match(await page.textContent("#flat-summary"), /more changed by no more than their uncertainty/);
    // A colour is never all that says how something changed.
    const parse = page.locator('table#flat tr[data-method^="com.acme.text.Parser.parse("]');
    assert.match(await parse.locator('[data-column="change"]').textContent(), /^\+/);
    assert.equal(await page.locator('table#flat tr[data-presence="removed"]').first().locator('[data-column="relative"]').textContent(), "gone");
    assert.equal(await page.locator('table#flat tr[data-presence="added"]').first().locator('[data-column="relative"]').textContent(), "new");
    await page.check("#unchanged");
    assert.equal((await allRows(page, "flat")).length, diff.methods.length);
    await page.uncheck("#unchanged");
    // The tree has what changed, and what leads to it.
    await view(page, "tree");
    await page.click("#open-all");
    const kept = new Set();
    for (const node of diff.nodes.filter(isChanged)) for (let at = node; at; at = diff.nodes[at.parent]) kept.add(at.id);
    assert.deepEqual((await allRows(page, "tree")).map((row) => Number(row.node)).sort((a, b) => a - b), [...kept].sort((a, b) => a - b));
    // Frames by either side, coloured by the change of self time, total time or calls.
    await view(page, "flame");
    for (const width of ["before", "after", "both"]) {
      await settled(page);
      const before = await drawings(page);
      await page.selectOption("#width", width);
      await settled(page);
      assert.ok((await drawings(page)) > before);
    }
    for (const colour of ["total-change", "calls-change", "self-change"]) {
      await page.selectOption("#colour", colour);
      assert.equal((await page.$$("#key li")).length, 7);
    }
    await page.fill("#query", "changed = yes && self > 100us");
    await page.click("#find-next");
    assert.match(await page.textContent("#find-result"), /^1 of \d+$/);
    await view(page, "about");
    assert.match(await page.textContent("#foot"), /^(FAILED|passed) self\(com\.acme\.\*\) > \+5%: /);
  },
};
