// Open a page in Chromium, run a script on it, and print what was seen as JSON.
// node browser.mjs MODULES ADDRESS SCRIPT CHROMIUM PROFILE PICTURES
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, address, script, executablePath, profile, pictures] = process.argv.slice(2);
const require = createRequire(join(modules, "package.json"));
const { chromium } = require("playwright-core");
const { default: look } = await import(pathToFileURL(script).href);

const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  offline: address.startsWith("file:"),
  viewport: { width: 1280, height: 900 },
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});
const page = context.pages()[0] ?? (await context.newPage());
page.setDefaultTimeout(60_000);
const seen = { errors: [], elsewhere: [], dialogs: 0 };
page.on("console", (line) => line.type() === "error" && seen.errors.push(line.text()));
page.on("pageerror", (error) => seen.errors.push(String(error)));
page.on("dialog", (dialog) => { seen.dialogs += 1; dialog.dismiss(); });
page.on("request", (request) => {
  const url = request.url();
  if (!url.startsWith(address) && !url.startsWith("data:")) seen.elsewhere.push(url);
});
await page.goto(address);
const axe = async () => {
  await page.evaluate(require("axe-core").source);
  const found = await page.evaluate(() => window.axe.run());
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target).join(" ")}`);
};
const picture = (name, more = {}) => page.screenshot({ path: join(pictures, `${name}.png`), ...more });
Object.assign(seen, await look({ page, axe, picture }));
console.log(JSON.stringify(seen));
await context.close();
