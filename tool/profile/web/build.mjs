// Makes the page: `node build.mjs NODE_MODULES PAGE`. One file; its policy names the hashes of the only script and the only style.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, output] = process.argv.slice(2);
// The tools are not installed beside their user, so that a checkout stays clean.
const { build } = createRequire(`${resolve(modules)}/`)("esbuild");
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const options = { bundle: true, minify: true, write: false, target: "es2022", charset: "utf8", legalComments: "none" };
const bundled = async (entry) => {
  const result = await build({ ...options, absWorkingDir: here("."), entryPoints: [entry] });
  return result.outputFiles[0].text.trim();
};
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = await bundled("src/main.ts");
const style = await bundled("src/style.css");
if (script.includes("</script") || style.includes("</style") || (script + style).includes("{{")) {
  throw new Error("the page's own code would end its element, or has a placeholder");
}
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'`;
const page = readFileSync(here("src/page.html"), "utf8")
  .replace("{{policy}}", () => policy)
  .replace("{{style}}", () => style)
  .replace("{{script}}", () => script);
writeFileSync(output, page);
