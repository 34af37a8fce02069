// Use the catalog page as a person does, in a real browser, and print what was seen as JSON.
// node check.mjs MODULES URL CHROMIUM PROFILE PICTURES
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, url, executablePath, profile, pictures] = process.argv.slice(2);
const require = createRequire(join(modules, "package.json"));
const { chromium } = require("playwright-core");
const axe = require("axe-core");

const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  headless: true,
  viewport: { width: 1280, height: 900 },
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});
const page = context.pages()[0] ?? (await context.newPage());
page.setDefaultTimeout(20_000);
const seen = { errors: [], elsewhere: [], dialogs: 0 };
page.on("console", (line) => line.type() === "error" && seen.errors.push(line.text()));
page.on("pageerror", (error) => seen.errors.push(String(error)));
page.on("dialog", (dialog) => { seen.dialogs += 1; dialog.dismiss(); });
page.on("request", (request) => {
  if (!request.url().startsWith(url) && !request.url().startsWith("data:")) seen.elsewhere.push(request.url());
});

const listed = () => page.locator("#list .urn").allTextContents();
const faults = async () => {
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => window.axe.run());
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target).join(" ")}`);
};
const judge = async (text) => {
  await page.locator("#candidate").fill(text);
  await page.getByRole("button", { name: "Check this schema" }).click();
  await page.locator("#result strong").waitFor();
  const told = {
    verdict: await page.locator("#result").getAttribute("data-verdict"),
    text: await page.locator("#result").innerText(),
    witness: await page.locator("#witness").count() ? await page.locator("#witness").innerText() : "",
  };
  return told;
};

await page.goto(url);
await page.locator("#list a").first().waitFor();
seen.all = await listed();
seen.title = await page.title();

const search = page.getByLabel("Search URN, title, owner or field");
await search.fill("tckn");
seen.byField = await listed();
await search.fill("IDENTITY active");
seen.byOwner = await listed();
await search.fill("no such thing");
seen.byNothing = await listed();
seen.count = await page.locator("#count").innerText();
await search.fill("");
await page.getByLabel("only with personal data").check();
seen.personal = await listed();
await page.getByLabel("only with personal data").uncheck();

await page.getByRole("link", { name: "urn:babel:users:registered" }).click();
await page.locator("#fields tr").first().waitFor();
seen.marks = await page.locator("#fields tr:has(.pii) td:first-child").allTextContents();
seen.facts = await page.locator("main dl").innerText();
await page.screenshot({ path: join(pictures, "subject.png"), fullPage: false });

await page.getByRole("link", { name: "urn:babel:orders:created" }).press("Enter");
await page.getByRole("heading", { name: "An order was created" }).waitFor();
seen.current = await page.locator("#list a[aria-current=page] .urn").innerText();
const registered = JSON.parse(await page.locator("#candidate").inputValue());

const broken = structuredClone(registered);
broken.properties.order_id = { type: "string" };
seen.breaking = await judge(JSON.stringify(broken, null, 2));
await page.locator("#try-title").scrollIntoViewIfNeeded();
await page.locator("#result").scrollIntoViewIfNeeded();
await page.screenshot({ path: join(pictures, "breaking.png") });
seen.faultsLight = await faults();

const wider = structuredClone(registered);
wider.properties.gift = { type: "boolean" };
seen.compatible = await judge(JSON.stringify(wider));
const before = seen.errors.length;
seen.unreadable = await judge("{");
seen.errors.splice(before, 1); // the browser itself notes the 422 that was asked for
await page.getByRole("button", { name: "Back to the registered one" }).click();
seen.reset = await page.locator("#result").innerText();

await page.emulateMedia({ colorScheme: "dark" });
seen.again = await judge(JSON.stringify(broken, null, 2));
await page.locator("#result").scrollIntoViewIfNeeded();
await page.screenshot({ path: join(pictures, "dark.png") });
seen.faultsDark = await faults();
await page.setViewportSize({ width: 390, height: 800 });
await page.evaluate(() => window.scrollTo(0, 0));
await page.screenshot({ path: join(pictures, "narrow.png"), fullPage: true });
seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);

await page.goto(url + "/#" + encodeURIComponent("urn:nobody"));
seen.missing = await page.locator("main").innerText();
await context.close();
process.stdout.write(JSON.stringify(seen));
