/** Converts screenshots of the tests to the WebP pictures in docs/page, using the browser's encoder. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { browser, closeBrowser, ROOT, SHOTS } from './harness.mjs';

const PICTURES = { 'search-light': 'search', correcting: 'mending', 'duplicates-dark': 'duplicates', retry: 'failures', 'timeline-light': 'timeline' };

mkdirSync(join(ROOT, 'docs/page'), { recursive: true });
const page = await (await browser()).newPage();
for (const [shot, name] of Object.entries(PICTURES)) {
  const png = readFileSync(join(SHOTS, `${shot}.png`)).toString('base64');
  const webp = await page.evaluate(async (png) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
    canvas.getContext('2d').drawImage(image, 0, 0);
    return canvas.toDataURL('image/webp', 0.8).split(',')[1];
  }, png);
  writeFileSync(join(ROOT, 'docs/page', `${name}.webp`), Buffer.from(webp, 'base64'));
}
await closeBrowser();
