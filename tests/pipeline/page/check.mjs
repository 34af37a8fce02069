// Read every plot of the page of a lake from the document, use it by keys, in both colours and on a
// telephone.
const marks = (page, selector) => page.locator(selector).evaluateAll((found) => found.map((one) => {
  const box = one.getBoundingClientRect();
  return { ...one.dataset, left: box.left, top: box.top, width: box.width, height: box.height };
}));
const rows = (page, name) => page.getByRole("table", { name, exact: true }).evaluateAll((tables) => tables.flatMap((one) =>
  [...one.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent))));

export default async ({ page, axe, picture }) => {
  const seen = { headline: await page.locator("header p").innerText() };
  for (const details of await page.locator("details").all()) await details.evaluate((one) => { one.open = true; });
  seen.tiles = await marks(page, ".tile");
  seen.acceptance = await marks(page, "#acceptance .mark");
  seen.nothing = await page.locator(".nothing").allTextContents();
  seen.tables = {};
  for (const name of ["Records over time", "Refused records by stage and reason", "Schema violations by URN and keyword", "Deliveries by queue", "Latency by sender and receiver", "Flows", "Drift", "Exposure", "Coverage", "Verdicts", "Inputs", "Rows"]) {
    seen.tables[name] = await rows(page, name);
  }
  seen.stages = await marks(page, "#violations table[aria-label^=Refused] .mark");
  seen.rules = await marks(page, "#violations table[aria-label^=Broken] .mark");
  seen.faults = await page.locator("#deliveries tbody tr").evaluateAll((found) => found.map((row) =>
    [row.querySelector("code").textContent, [...row.querySelectorAll(".mark")].map((one) => {
      const box = one.getBoundingClientRect();
      return { series: one.dataset.series, value: Number(one.dataset.value), left: box.left, right: box.right };
    })]));
  seen.latency = await page.locator("#latency tbody tr").evaluateAll((found) => found.map((row) =>
    [row.querySelector("code").textContent, [...row.querySelectorAll(".mark")].map((one) => {
      const [bar] = one.querySelectorAll(".error"), point = one.querySelector("circle").getBoundingClientRect();
      const ends = bar?.getBoundingClientRect();
      return { ...one.dataset, point: point.left + point.width / 2, from: ends?.left, to: ends?.right };
    })]));
  seen.boxes = await marks(page, "#flows .node");
  seen.arrows = await marks(page, "#flows .flow");
  seen.command = await page.locator("#run pre").innerText();

  const plot = page.locator(".plot").first();
  if (await plot.count()) {
    await plot.focus();
    await page.keyboard.press("ArrowRight");
    seen.tip = await page.locator("#tip").innerText();
    await page.keyboard.press("Escape");
    seen.tipHidden = await page.locator("#tip").isHidden();
  }
  for (const details of await page.locator("details").all()) await details.evaluate((one) => { one.open = false; });
  await picture("traffic", { fullPage: true });
  seen.faultsLight = await axe();
  await page.emulateMedia({ colorScheme: "dark" });
  seen.faultsDark = await axe();
  await picture("traffic-dark", { fullPage: true });
  await page.setViewportSize({ width: 375, height: 800 });
  seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  await page.emulateMedia({ colorScheme: "light" });
  await picture("traffic-telephone", { fullPage: true });
  return seen;
};
