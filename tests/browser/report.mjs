// The HTML report as a reader uses it, in headless Chromium. usage: node report.mjs PAGES CHROMIUM [SCREENSHOTS]
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';

const [pages, executablePath, screenshots] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), 'stem-chromium-'));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, viewport: { width: 1500, height: 950 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

let failures = 0, ran = 0;
async function test(title, name, body, options = {}) {
  const page = await browser.newPage();
  await page.emulateMedia({ colorScheme: options.dark ? 'dark' : 'light' });
  const problems = [], requests = [];
  page.on('pageerror', error => problems.push(error.message));
  page.on('console', message => { if (message.type() === 'error') problems.push(message.text()); });
  page.on('dialog', dialog => { problems.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', request => { if (!request.url().startsWith('file:')) requests.push(request.url()); });
  ++ran;
  try {
    await page.goto(`file://${resolve(pages, name + '.html')}${options.hash || ''}`);
    await page.waitForSelector('html[data-ready]', { timeout: 30000 });
    await body(page);
    assert.deepEqual(problems, [], 'the page reports problems');
    assert.deepEqual(requests, [], 'the page asks the network');
    if (screenshots) await page.screenshot({ path: join(screenshots, `${title.replace(/\W+/g, '-')}.png`) });
    console.log(`ok: ${title}`);
  } catch (error) {
    ++failures;
    console.error(`FAILED: ${title}\n${error.stack}`);
  }
  await page.close();
}
const textOf = (page, selector) => page.locator(selector).innerText();

await test('the header states coverage and its denominator', 'example', async page => {
  const coverage = await textOf(page, '#coverage');
  for (const part of ['75.0 %', 'of 12 def-use pairs', '9 covered', '3 predicted, not exercised (3 confirmed)', '0 infeasible within a bound', '0 unknown', '0 suppressed']) assert.ok(coverage.includes(part), `${part} in ${coverage}`);
  assert.equal(await page.locator('#list .item').count(), 12);
});

await test('a read shows every definition that reaches it, and from which thread', 'example', async page => {
  await page.locator('#source .row[data-line="22"] button[aria-label*="definitions reach"]').click();
  const details = await textOf(page, '#details');
  assert.match(details, /read of z: 3 definitions reach it/i);
  assert.equal(await page.locator('#details .access.def').count(), 3);
  assert.ok(details.includes('from T0 (main/1) to T1 (main/2)'), details);
  assert.ok(details.includes('initial value'), details);
});

await test('a pair shows its witness: a column per thread, an arrow from the write to the read', 'example', async page => {
  await page.locator('#list .item', { hasText: 'example.c:22 → example.c:7' }).click();
  assert.deepEqual(await page.locator('#witness svg .thread').allTextContents(), ['T0', 'T1']);
  const box = async role => (await page.locator(`#witness svg .step.${role} .box`).boundingBox());
  const def = await box('def'), use = await box('use');
  assert.ok(def.x > use.x && def.y < use.y, 'the write is in the column of T1, above the read in the column of T0');
  assert.equal(await page.locator('#witness svg path.arrow').count(), 1);
  assert.ok((await textOf(page, '#details')).includes('stem replay p'));
  assert.equal(await page.locator('#source .row.is-def').getAttribute('data-line'), '22');
  assert.equal(await page.locator('#source .row.is-use').getAttribute('data-line'), '7');
  assert.ok(await page.locator('#source svg.arcs-overlay path').count() >= 2, 'the margin shows the flow too');
});

await test('margin marks: writes, reads, and a definition that nobody uses', 'example', async page => {
  const label = async line => page.locator(`#source .row[data-line="${line}"] .marks button`).evaluateAll(all => all.map(button => button.getAttribute('aria-label')));
  assert.deepEqual(await label(7), ['1 flows from the writes here, 0 not covered', '2 definitions reach the reads here, 1 not covered']);
  assert.ok((await label(20)).includes('written here, and nothing reads it'));
  await page.locator('#source .row[data-line="20"] .marks button').first().click();
  assert.match(await textOf(page, '#details'), /never used, in any trace or prediction/);
});

await test('search and filters', 'example', async page => {
  await page.fill('#search', 'y t1');
  assert.equal(await page.locator('#list .item').count(), 2);
  assert.equal(await textOf(page, '#count'), '2 of 12 pairs');
  await page.fill('#search', '');
  await page.locator('.chip', { hasText: 'covered' }).click();
  assert.equal(await page.locator('#list .item').count(), 3);
  await page.check('#check-crossOnly');
  assert.equal(await page.locator('#list .item').count(), 2);
  await page.locator('#tab-suspicious').click();
  assert.ok(await page.locator('#list .item', { hasText: 'unused definition of y' }).count() === 1);
});

await test('the keyboard reaches everything', 'example', async page => {
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'search');
  await page.focus('#list');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  assert.equal(await page.locator('#list .item[aria-selected="true"]').getAttribute('id'), 'item-1');
  assert.equal(await page.locator('#list').getAttribute('aria-activedescendant'), 'item-1');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'details');
  await page.keyboard.press('Tab');
  assert.ok(await page.evaluate(() => document.activeElement.classList.contains('access')));
  await page.focus('#source');
  await page.keyboard.press('n');
  assert.match(await textOf(page, '#details h2'), /example\.c:\d+/);
  const unnamed = await page.evaluate(() => [...document.querySelectorAll('button, input, select, [role=listbox], svg[role=img]')]
    .filter(node => !(node.getAttribute('aria-label') || node.textContent.trim() || node.labels?.length || node.title)).map(node => node.outerHTML.slice(0, 80)));
  assert.deepEqual(unnamed, [], 'controls without a name');
});

await test('dark follows the system and the button', 'example', async page => {
  const theme = () => page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]);
  const [name, colour] = await theme();
  assert.equal(name, 'dark');
  await page.click('#theme');
  const [light, other] = await theme();
  assert.equal(light, 'light');
  assert.notEqual(colour, other);
  await page.click('#theme');
  await page.evaluate(() => localStorage.removeItem('stem-theme'));
}, { dark: true });

await test('a link opens the same place', 'example', async page => {
  assert.match(await textOf(page, '#details h2'), /example\.c:22/);
}, { hash: '#example.c:22' });

await test('hostile names are only text', 'hostile', async page => {
  for (let i = 0; i < 2; ++i) await page.locator('#list .item').nth(i).click();
  await page.locator('#list .item', { hasText: 'v\'; DROP TABLE' }).first().click();
  assert.ok((await textOf(page, '#details')).includes('<script>alert(1)</script>'));
  assert.equal(await page.locator('script').count(), 2);
  assert.equal(await page.locator('img').count(), 0);
  await page.locator('#tab-suspicious').click();
  await page.locator('#list .item').first().click();
  await page.click('#about-button');
});

await test('ten thousand pairs stay quick', 'big', async page => {
  assert.equal(await textOf(page, '#count'), '10000 pairs');
  assert.ok(await page.locator('#list .item').count() < 60, 'the list is virtual');
  const time = async action => { const start = Date.now(); await action(); return Date.now() - start; };
  const search = await time(async () => { await page.fill('#search', 'shared_17 file03'); await page.waitForFunction(() => document.getElementById('count').textContent !== '10000 pairs'); });
  await page.fill('#search', '');
  const end = await time(async () => { await page.focus('#list'); await page.keyboard.press('End'); await page.waitForSelector('#item-9999'); });
  assert.ok(search < 3000 && end < 3000, `search ${search} ms, end of the list ${end} ms`);
  assert.ok(await page.locator('#source .row').count() < 120, 'the source is virtual');
  await page.keyboard.press('Home');
  await page.locator('#witness button', { hasText: 'Show every step' }).click();
  assert.equal(await page.locator('#witness svg .step').count(), 60);
});

await test('an empty database has a page', 'empty', async page => {
  assert.ok((await textOf(page, '#coverage')).includes('nothing to cover'));
});

await browser.close();
rmSync(profile, { recursive: true, force: true });
console.log(`${ran} browser tests, ${failures} failed`);
process.exit(failures ? 1 : 0);
