// Use the report as a person does, from disk in a real browser, and print what was seen as JSON.
// node check.mjs MODULES FILE CHROMIUM PROFILE PICTURES
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, file, executablePath, profile, pictures] = process.argv.slice(2);
const require = createRequire(join(modules, "package.json"));
const { chromium } = require("playwright-core");
const axe = require("axe-core");
const url = pathToFileURL(file).href;

const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  offline: true,
  bypassCSP: false,
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
  if (request.url() !== url && !request.url().startsWith("data:")) seen.elsewhere.push(request.url());
});
const names = () => page.locator("#cases summary .name").allTextContents();
const count = () => page.locator("#count").innerText();

await page.goto(url);
await page.locator("#cases li").first().waitFor();
seen.about = await page.locator("#about").innerText();
seen.alarm = await page.locator("#alarm").innerText();
seen.first = (await names()).slice(0, 3);
seen.sections = await page.getByRole("table", { name: "Sections by subject" }).innerText();
seen.matrix = await page.getByRole("table", { name: "Pairs over qpid" }).innerText();
seen.results = await page.getByRole("table", { name: "Results of tier/full" }).innerText();
seen.perf = await page.getByRole("table", { name: "Figures of TC2_BasicP2P over qpid" }).innerText();
seen.pictures = await page.getByRole("img", { name: "Latency of TC2_BasicP2P over qpid" }).count();
seen.coverage = await page.locator("#coverage").innerText();
seen.changes = await page.locator("#changes").innerText();
seen.runs = await page.locator("#runs").innerText();
seen.limited = (await names()).length;
await page.getByRole("button", { name: "Show more" }).click();
seen.more = (await names()).length;
await page.screenshot({ path: join(pictures, "report.png"), fullPage: false });

await page.getByRole("button", { name: "java to go over qpid" }).click();
seen.cell = await names();
seen.cellCount = await count();
await page.locator("#cases details").first().locator("summary").click();
await page.locator("#cases .inside").first().waitFor();
seen.inside = await page.locator("#cases .inside").first().innerText();
seen.command = await page.locator("#cases pre").first().innerText();
await page.screenshot({ path: join(pictures, "case.png"), fullPage: false });

await page.getByRole("button", { name: "Show all" }).click();
const search = page.getByLabel("Search name, reason or difference");
await search.fill("ping LOST");
seen.searched = await names();
await search.fill("no such thing");
seen.nothing = await count();
await search.fill("");
await page.getByLabel("passed", { exact: true }).uncheck();
seen.notPassed = await count();
await page.getByLabel("passed", { exact: true }).check();
await page.getByLabel("Run", { exact: true }).selectOption({ index: 1 });
seen.oneRun = await count();

const faults = async () => {
  const found = await page.evaluate(() => window.axe.run());
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target).join(" ")}`);
};
await page.evaluate(axe.source);
seen.faultsLight = await faults();
await page.emulateMedia({ colorScheme: "dark" });
seen.faultsDark = await faults();
await page.setViewportSize({ width: 375, height: 800 });
seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
await page.screenshot({ path: join(pictures, "telephone.png"), fullPage: false });

console.log(JSON.stringify(seen));
await context.close();
