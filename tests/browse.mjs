// Visits pages in Chromium and prints what it found as JSON: requests that left the origin, faults by axe, what fired.
// Usage: node browse.mjs MODULES CHROMIUM JOB.json
// job: origin; paths; views ([width, scheme]); folder for pictures or ""; axe (true to run it); probe (script for each page);
// steps: [[what, selector or path, value]] done after the pages, with the policy in force
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [modules, chromium, file] = process.argv.slice(2);
const require = createRequire(join(modules, "node_modules", "x.js"));
const { chromium: browserType } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const job = JSON.parse(readFileSync(file, "utf8"));
const found = { left: [], axe: [], fired: [], wide: [], visited: 0, errors: [] };

const browser = await browserType.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
for (const [width, scheme] of job.views) {
  const context = await browser.newContext({
    viewport: { width, height: 900 }, colorScheme: scheme, bypassCSP: !job.steps, reducedMotion: "reduce",
  });
  const page = await context.newPage();
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(job.origin) && !url.startsWith("data:") && !url.startsWith("about:")) found.left.push(url);
  });
  page.on("dialog", async (dialog) => { found.fired.push(`${page.url()} ${dialog.message()}`); await dialog.dismiss(); });
  page.on("console", (message) => { if (message.text().startsWith("fired")) found.fired.push(message.text()); });
  await page.addInitScript(() => {
    for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = (text) => console.log(`fired ${name} ${text}`);
  });
  for (const [number, path] of job.paths.entries()) {
    try {
      await page.goto(job.origin + path, { waitUntil: "load", timeout: 30000 });
      if (job.probe) await page.evaluate(job.probe);
      found.visited += 1;
      const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (over > 0) found.wide.push(`${width} ${path} ${over}`);
      if (job.axe) {
        await page.evaluate(axe);
        const result = await page.evaluate(() => window.axe.run(document));
        for (const fault of result.violations) {
          if (["serious", "critical"].includes(fault.impact)) {
            found.axe.push(`${width} ${scheme} ${path}: ${fault.id} ${fault.nodes[0].html.slice(0, 160)}`);
          }
        }
      }
      if (job.folder) {
        await page.screenshot({ path: join(job.folder, `${String(number).padStart(2, "0")}-${width}-${scheme}.png`), fullPage: true });
      }
    } catch (error) { found.errors.push(`${path}: ${error}`); }
  }
  for (const [what, where, value] of job.steps ?? []) {
    try {
      page.setDefaultTimeout(15000);
      if (what === "goto") await page.goto(job.origin + where);
      if (what === "fill") await page.fill(where, value);
      if (what === "select") await page.selectOption(where, value);
      if (what === "check") await page.check(where);
      if (what === "click") await Promise.all([page.waitForNavigation(), page.click(where)]);
      if (what === "press") await Promise.all([page.waitForNavigation(), page.press(where, value)]);
      if (what === "reads") {
        const text = await page.innerText("main");
        if (!text.includes(where)) found.errors.push(`expected "${where}", found "${text.slice(0, 300)}"`);
      }
      found.visited += 1;
    } catch (error) { found.errors.push(`${what} ${where}: ${error}`); }
  }
  await context.close();
}
await browser.close();
process.stdout.write(JSON.stringify(found));
