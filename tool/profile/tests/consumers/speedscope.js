// Reads a file by speedscope's own importer, and prints the profiles that it has understood.
//
// node speedscope.js <the npm package's directory> <file> <name to import it as>

const fs = require("fs");
const path = require("path");

const [packageDirectory, file, name] = process.argv.slice(2);
const release = path.join(packageDirectory, "dist/release");
const bundle = fs.readdirSync(release).find((entry) => /^speedscope-.*\.js$/.test(entry));

// The package is a web page. Its importer is a module in the page's script: an object of functions that is seen when they are
// defined. What draws the page finds a browser of nothing, and may fail in it.
const defineProperty = Object.defineProperty;
let importer = null;
Object.defineProperty = (object, key, descriptor) => {
  if (key === "importProfileGroupFromBase64") importer = object;
  return defineProperty(object, key, descriptor);
};
const nothing = new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => "" : nothing),
  apply: () => nothing,
  construct: () => nothing,
  set: () => true,
});
for (const key of ["document", "location", "localStorage", "requestAnimationFrame"]) {
  defineProperty(globalThis, key, { value: nothing, configurable: true, writable: true });
}
globalThis.window = globalThis;
globalThis.addEventListener = globalThis.matchMedia = nothing;
const print = console.log;
console.log = () => {};
try {
  (0, eval)(fs.readFileSync(path.join(release, bundle), "utf8"));
} catch (error) {
  if (!importer) throw error;
}

// A list of every node: its frames' names from the root on, self and total weight.
function nodes(root) {
  const found = [];
  const pending = root.children.map((child) => [child, []]);
  while (pending.length > 0) {
    const [node, above] = pending.pop();
    const stack = [...above, node.frame.name];
    found.push({ stack, self: node.getSelfWeight(), total: node.getTotalWeight() });
    for (const child of node.children) pending.push([child, stack]);
  }
  return found;
}

// The importer is initialised by a promise of the page.
setTimeout(async () => {
  const group = await importer.importProfileGroupFromBase64(name, fs.readFileSync(file).toString("base64"));
  if (!group) throw new Error(`speedscope cannot read ${name}`);
  const profiles = group.profiles.map((profile) => ({
    name: profile.getName(),
    unit: profile.getWeightUnit(),
    total: profile.getTotalWeight(),
    nodes: nodes(profile.getGroupedCalltreeRoot()),
  }));
  print(JSON.stringify({ name: group.name, profiles }));
});
