// Use the report as a person does, from disk; `browser.mjs` opens it.
export default async ({ page, axe, picture }) => {
  const seen = {};
  const names = () => page.locator("#cases summary .name").allTextContents();
  const count = () => page.locator("#count").innerText();

  await page.locator("#cases li").first().waitFor();
  seen.about = await page.locator("#about").innerText();
  seen.alarm = await page.locator("#alarm").innerText();
  seen.first = (await names()).slice(0, 3);
  seen.sections = await page.getByRole("table", { name: "Sections by implementation" }).innerText();
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
  await picture("report");

  await page.getByRole("button", { name: "java to go over qpid" }).click();
  seen.cell = await names();
  seen.cellCount = await count();
  await page.locator("#cases details").first().locator("summary").click();
  await page.locator("#cases .inside").first().waitFor();
  seen.inside = await page.locator("#cases .inside").first().innerText();
  seen.command = await page.locator("#cases pre").first().innerText();
  await picture("case");

  await page.getByRole("button", { name: "Show all" }).click();
  const search = page.getByLabel("Search names, reasons and differences");
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

  seen.faultsLight = await axe();
  await page.emulateMedia({ colorScheme: "dark" });
  seen.faultsDark = await axe();
  await page.setViewportSize({ width: 375, height: 800 });
  seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  await picture("telephone");
  return seen;
};
