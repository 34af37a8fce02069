// Use the catalog page as a person does; `browser.mjs` opens it.
export default async ({ page, axe, picture }) => {
  const seen = {};
  const listed = () => page.locator("#list .urn").allTextContents();
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
  await picture("subject");

  await page.getByRole("link", { name: "urn:babel:orders:created" }).press("Enter");
  await page.getByRole("heading", { name: "An order was created" }).waitFor();
  seen.current = await page.locator("#list a[aria-current=page] .urn").innerText();
  const registered = JSON.parse(await page.locator("#candidate").inputValue());

  const broken = structuredClone(registered);
  broken.properties.order_id = { type: "string" };
  seen.breaking = await judge(JSON.stringify(broken, null, 2));
  await page.locator("#try-title").scrollIntoViewIfNeeded();
  await page.locator("#result").scrollIntoViewIfNeeded();
  await picture("breaking");
  seen.faultsLight = await axe();

  const wider = structuredClone(registered);
  wider.properties.gift = { type: "boolean" };
  seen.compatible = await judge(JSON.stringify(wider));
  seen.unreadable = await judge("{");
  await page.getByRole("button", { name: "Reset to the registered schema" }).click();
  seen.reset = await page.locator("#result").innerText();

  await page.emulateMedia({ colorScheme: "dark" });
  seen.again = await judge(JSON.stringify(broken, null, 2));
  await page.locator("#result").scrollIntoViewIfNeeded();
  await picture("dark");
  seen.faultsDark = await axe();
  await page.setViewportSize({ width: 390, height: 800 });
  await page.evaluate(() => window.scrollTo(0, 0));
  await picture("narrow", { fullPage: true });
  seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);

  await page.goto(page.url().split("#")[0] + "#" + encodeURIComponent("urn:nobody"));
  seen.missing = await page.locator("main").innerText();
  return seen;
};
