// What is asked of a page with several metrics, by case, and of how it fits a window: see tool/profile/tests/html/main.rs.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";
import { allRows, info, noSidewaysScrolling, rows, selectedNode, settled, sorted, view } from "./page-cases.mjs";

/** The flame graph as it is drawn. */
const picture = (page) => page.$eval("#flame", (canvas) => canvas.toDataURL());

const unitOf = { nanoseconds: "Ns", bytes: "Bytes", bytecodes: "Bytecodes", count: "" };

export const cases = {
  /** Frames are as wide as one metric, and coloured by another. */
  async width_and_colour({ open, json }) {
    const page = await open();
    const { metrics } = json("tree");
    const groups = await page.$$eval("#colour optgroup", (found) => found.map((group) => [group.label, [...group.children].map((option) => option.value)]));
    const [own, total] = groups.map(([, values]) => values);
    for (const { id, extent } of metrics) {
      assert.ok(own.includes(`own:${id}`), id);
      assert.equal(total.includes(`total:${id}`), extent === "own-and-total", id);
    }
    for (const id of ["own:alloc-per-call", "total:wait-share", "total:running-share"]) assert.ok([...own, ...total].includes(id), id);
    await settled(page);
    const frames = await page.getAttribute("#flame", "data-frames");
    let before = await picture(page);
    for (const colour of ["own:alloc", "total:wait-share", "own:alloc-per-call"]) {
      await page.selectOption("#colour", colour);
      await settled(page);
      assert.equal(await page.getAttribute("#key", "data-mapping"), colour);
      assert.equal(await page.getAttribute("#flame", "data-frames"), frames, "as wide as before");
      assert.notEqual(await picture(page), before, colour);
      before = await picture(page);
    }
    // What colours is a column, too, and sorts the table.
    await view(page, "methods");
    const each = json("derived").flat.map((row) => row.metrics["alloc-per-call"].self).sort((a, b) => b - a);
    await page.click('table#flat th[data-column="beside"] button');
    assert.equal(await page.textContent('table#flat th[data-column="beside"]'), "alloc-per-call self");
    assert.deepEqual(await page.$$eval('table#flat td[data-column="beside"]', (cells) => cells.map((cell) => Number(cell.dataset.value))), each);
    await view(page, "tree");
    assert.ok(await page.locator('table#tree td[data-column="beside"]').first().isVisible());
    await view(page, "flame");
    // The colour stays when the width changes, and the width does when the colour does.
    await page.selectOption("#width", "alloc");
    assert.equal(await page.inputValue("#colour"), "own:alloc-per-call");
    assert.equal(await page.getAttribute("#key", "data-mapping"), "own:alloc-per-call");
    await settled(page);
    assert.notEqual(await picture(page), before);
    const keys = await page.$$eval("#key li", (items) => items.map((item) => item.textContent));
    assert.ok(keys.some((text) => /^above .*(B|KiB|MiB)$/.test(text)), String(keys));
  },

  /** Waits are parts of self times: the same as in JSON, stacked. */
  async waits({ open, json }) {
    const page = await open();
    const { nodes, parts } = json("tree");
    await view(page, "tree");
    await page.click("#open-all");
    for (const node of nodes) {
      const there = parts.map(({ part }) => [part, node.parts[part]]).filter(([, value]) => value > 0);
      const row = page.locator(`table#tree tr[data-node="${node.id}"]`);
      const [largest] = [...there].sort(([, a], [, b]) => b - a);
      assert.match(await row.locator('td[data-column="waits"]').innerText(), new RegExp(`^${largest[0]} \\d+%$`));
      assert.equal(await row.locator(".stacked > span").count(), there.length);
      await row.locator(".label").click();
      const told = await page.$$eval("#node dd", (found) => found.map(({ dataset }) => [dataset.name, Number(dataset.value)]));
      for (const [part, value] of there) assert.ok(told.some(([name, told]) => name === part && told === value), `${part} of ${node.method}: ${value}`);
      const widths = await page.$$eval("#node .stacked span", (found) => found.map((piece) => parseFloat(piece.style.width)));
      assert.ok(Math.abs(widths.reduce((sum, width) => sum + width, 0) - 100) < 0.01, String(widths));
    }
    await view(page, "methods");
    for (const row of json("flat").flat) {
      const [largest] = parts.map(({ part }) => [part, row.parts[part]]).sort(([, a], [, b]) => b - a);
      const cell = page.locator(`table#flat tr[data-method="${row.method}"] td[data-column="waits"]`);
      assert.match(await cell.innerText(), new RegExp(`^${largest[0]} \\d+%$`));
    }
    // The flame graph divides its frames.
    await view(page, "flame");
    await page.selectOption("#colour", "waits");
    await settled(page);
    assert.deepEqual(await page.$$eval("#key li", (items) => items.map((item) => item.textContent)), parts.map(({ part }) => part));
    const colours = await page.evaluate(() => {
      const canvas = document.querySelector("#flame");
      const { data } = canvas.getContext("2d").getImageData(0, Math.round(devicePixelRatio), canvas.width, 1);
      const seen = new Map();
      for (let at = 0; at < data.length; at += 4) {
        const colour = `${data[at]} ${data[at + 1]} ${data[at + 2]}`;
        seen.set(colour, (seen.get(colour) ?? 0) + 1);
      }
      return [...seen.values()].filter((width) => width > 20).length;
    });
    assert.ok(colours >= 3, `the root ran, was parked and was in sockets: ${colours}`);
  },

  /** What a node has of all metrics, those too that follow from others, is what JSON says. */
  async others({ open, json }) {
    const page = await open();
    const { nodes, metrics } = json("derived");
    await view(page, "tree");
    await page.click("#open-all");
    const told = metrics.filter(({ id }) => ["alloc", "alloc-per-call", "running-share", "wait-share", "bytecodes"].includes(id));
    assert.equal(told.length, 5);
    for (const node of nodes) {
      await page.click(`table#tree tr[data-node="${node.id}"] .label`);
      for (const { id, title } of told) {
        const value = node.metrics[id];
        if (value.self === 0 && value.total === 0) continue;
        const found = await page.getAttribute(`#node dd[data-name="${title}"]`, "data-value");
        assert.equal(Number(found), value.self, `${id} of ${node.method}`);
      }
    }
  },

  /** What is by samples is as uncertain as their number, also of many nodes together. */
  async sampled({ open, json }) {
    const page = await open();
    const { flat, metrics } = json("flat");
    const [{ id, unit }] = metrics;
    const of = unitOf[unit];
    await view(page, "methods");
    const shown = await allRows(page, "flat");
    const told = (row) => [row.method, ...["self", "total", "error", "totalError"].map((name) => Number(row[name + of]))];
    const expected = ({ method, metrics }) => [method, ...["self", "total", "error", "total_error"].map((name) => metrics[id][name])];
    assert.deepEqual(sorted(shown.map(told)), sorted(flat.map(expected)));
    assert.ok(flat.some(({ metrics }) => metrics[id].total_error > 1));
  },

  /** Methods by two metrics. */
  async scatter({ open, json }) {
    const page = await open();
    const flat = json("derived").flat;
    await view(page, "scatter");
    const points = async () => {
      await settled(page);
      return page.$eval("#scatter", ({ dataset }) => [Number(dataset.points), dataset.x, dataset.y]);
    };
    assert.deepEqual(await points(), [flat.length, "own:wall", "own:calls"]);
    await page.selectOption("#scatter-x", "own:alloc");
    await page.selectOption("#scatter-y", "own:wait-share");
    assert.deepEqual(await points(), [flat.length, "own:alloc", "own:wait-share"]);
    // By keyboard from the largest to the smallest, in the order of one metric.
    await page.focus("#scatter");
    const order = [...flat].sort((a, b) => b.metrics.alloc.self - a.metrics.alloc.self);
    for (const row of order) {
      await page.keyboard.press("ArrowLeft");
      assert.equal(await page.getAttribute('#node dd[data-name="Name for machines"]', "data-value"), row.method);
      const said = await page.textContent("#announcer");
      assert.ok(said.includes(`waiting as a part: self: ${(row.metrics["wait-share"].self / 10_000).toFixed(1)}%`), said);
    }
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    assert.equal(await page.getAttribute("#tab-callers", "aria-selected"), "true");
    // A search fades the others and leaves them there; a point under the pointer says what it is, and a click selects it.
    await view(page, "scatter");
    await page.fill("#search", "Log");
    assert.equal((await points())[0], flat.length);
    const box = await page.locator("#scatter").boundingBox();
    let isFound = false;
    for (let x = box.x + box.width - 20; x > box.x + box.width / 2 && !isFound; x -= 10) {
      for (let y = box.y + 5; y < box.y + box.height && !isFound; y += 10) {
        await page.mouse.move(x, y);
        isFound = await page.locator("#panel-scatter .tip").isVisible();
        if (isFound) await page.mouse.click(x, y);
      }
    }
    assert.ok(isFound, "a point");
    assert.equal(await info(page, "Method name"), (await page.textContent("#panel-scatter .tip strong")).trim());
  },

  /** A comparison of any metric is that of the JSON. */
  async compared({ open, json }) {
    const page = await open();
    const diff = json("diff");
    const choices = await page.$$eval("#metric option", (options) => options.map((option) => option.value));
    assert.deepEqual(choices, diff.metrics.map(({ id }) => id));
    await page.check("#unchanged");
    for (const { id, unit, extent } of diff.metrics.filter(({ id }) => ["alloc", "parked", "bytecodes", "running"].includes(id))) {
      await page.selectOption("#metric", id);
      const suffix = unitOf[unit];
      const parts = extent === "own" ? ["self"] : ["self", "total"];
      const shown = (row) => parts.flatMap((part) => ["Before", "After", "Change", "Error"].map((side) => Number(row[`${part}${side}${suffix}`])).concat(row[`${part}Changed`] === "true"));
      const expected = (row) => parts.flatMap((part) => [row.metrics[id][part].before, row.metrics[id][part].after, row.metrics[id][part].change, row.metrics[id][part].error, row.metrics[id][part].changed]);
      const near = (found, wanted) =>
        found.forEach(([key, ...values], at) => {
          const [other, ...expected] = wanted[at];
          assert.equal(key, other);
          values.forEach((value, index) => (typeof value === "number" ? assert.ok(Math.abs(value - expected[index]) <= 1e-9 * Math.abs(expected[index]), `${id} of ${key}: ${value}, ${expected[index]}`) : assert.equal(value, expected[index], `${id} of ${key}`)));
        });
      const byKey = (list) => [...list].sort(([a], [b]) => (a < b ? -1 : 1));
      await view(page, "methods");
      near(byKey((await allRows(page, "flat")).map((row) => [row.method, ...shown(row)])), byKey(diff.methods.map((row) => [row.method, ...expected(row)])));
      await view(page, "tree");
      await page.click("#open-all");
      near(byKey((await allRows(page, "tree")).map((row) => [row.node, ...shown(row)])), byKey(diff.nodes.map((row) => [String(row.id), ...expected(row)])));
    }
    // What changed by no more than is uncertain is hidden, by the metric that is shown.
    await page.uncheck("#unchanged");
    await page.selectOption("#metric", "alloc");
    await view(page, "methods");
    const changed = diff.methods.filter((row) => row.metrics.alloc.self.changed || row.metrics.alloc.total.changed || row.calls.changed);
    assert.deepEqual(sorted((await allRows(page, "flat")).map((row) => row.method)), sorted(changed.map((row) => row.method)));
    for (const metric of choices) {
      await page.selectOption("#metric", metric);
      for (const colour of ["total-change", "self-change", "calls-change"]) await page.selectOption("#colour", colour);
      for (const name of ["flame", "tree", "methods", "callers", "scatter"]) await view(page, name);
      await settled(page);
    }
    assert.match(await page.getAttribute("#scatter", "data-x"), /^before:own:/);
    assert.ok((await rows(page, "flat")).length > 0 && (await selectedNode(page)) !== undefined);
  },

  /** Everything is to be read at any width: nothing is cut that is a number, and of names the packages go first. */
  async layout({ open }) {
    const keep = process.env.HEADWATER_SCREENSHOTS;
    if (keep) mkdirSync(keep, { recursive: true });
    for (const [width, height] of [[1280, 800], [390, 844]]) {
      const isPhone = width < 500;
      const page = await open({ viewport: { width, height }, hasTouch: isPhone, isMobile: isPhone });
      await settled(page);
      const top = await page.$eval("#flame", (canvas) => canvas.getBoundingClientRect().top + scrollY);
      assert.ok(top < height / 2, `the flame graph begins at ${top} of ${height}`);
      for (const name of ["flame", "tree", "methods", "callers", "scatter", "about"]) {
        await view(page, name);
        if (name === "tree") {
          await page.click("#open-hot-path");
          await page.click("#open-level");
        }
        if (name === "methods") await page.click("table#flat tbody tr .label");
        await settled(page);
        assert.equal(await noSidewaysScrolling(page), 0, `${name} at ${width}`);
        const cut = await page.$$eval(`#panel-${name} tbody td:not(.name)`, (cells) =>
          cells.filter((cell) => cell.clientWidth > 0 && cell.scrollWidth > cell.clientWidth).map((cell) => `${cell.dataset.column}: ${cell.textContent}`),
        );
        assert.deepEqual(cut, [], `${name} at ${width}`);
        // A table needs no room beside it, and a method's name is cut only where none of its packages is left.
        const wide = await page.$$eval(`#panel-${name} .scroller`, (boxes) => boxes.filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => `${box.scrollWidth} in ${box.clientWidth}`));
        assert.deepEqual(wide, [], `${name} at ${width}`);
        const shortened = await page.$$eval(`#panel-${name} .label`, (labels) => {
          const isCut = (element) => {
            const text = document.createRange();
            text.selectNodeContents(element);
            return text.getBoundingClientRect().width > element.getBoundingClientRect().width + 0.01;
          };
          return labels.map((label) => [label.querySelector(".packages"), label.querySelector(".method")])
            .filter(([, method]) => method !== null && method.clientWidth > 0 && isCut(method))
            .map(([packages, method]) => [method.textContent, packages?.clientWidth ?? 0]);
        });
        assert.deepEqual(shortened.filter(([, packages]) => packages > 1), [], `${name} at ${width}`);
        // On a screen there is room for methods of usual length.
        assert.deepEqual(shortened.filter(([method]) => !isPhone && method.length < 24), [], `${name} at ${width}`);
        // Where nothing is coloured there is no key.
        const isColoured = await page.evaluate((name) => ["flame", "tree"].includes(name) && document.querySelectorAll("#key li").length > 1, name);
        assert.equal(await page.locator("#key").isVisible(), isColoured, name);
        if (keep) await page.screenshot({ path: join(keep, `layout-${await page.getAttribute("#app", "data-kind")}-${width}-${name}.png`), fullPage: isPhone });
      }
      // Warnings take a line, until they are opened.
      const warnings = page.locator("#warnings");
      if ((await warnings.count()) > 0) {
        const { height: folded } = await warnings.boundingBox();
        assert.ok(folded < 60, `warnings take ${folded}`);
        await warnings.locator("summary").click();
        assert.ok((await warnings.boundingBox()).height > folded || (await warnings.locator("li").count()) === 0);
        assert.equal(await noSidewaysScrolling(page), 0);
      }
      await page.context().close();
    }
  },
};
