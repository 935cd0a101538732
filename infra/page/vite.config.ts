import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';

/** Compresses the assets, which all browsers accept, and removes the originals. */
const compressed: Plugin = {
  name: 'compressed',
  apply: 'build',
  async writeBundle({ dir = 'dist' }, bundle) {
    const named = Object.keys(bundle).filter((name) => name.startsWith('assets/'));
    await Promise.all(
      named.map(async (name) => {
        const path = join(dir, name);
        await writeFile(`${path}.gz`, gzipSync(await readFile(path), { level: 9 }));
        await rm(path);
      }),
    );
  },
};

const server = process.env.SEARCH_IMPORT_SERVER ?? 'http://127.0.0.1:8080';

export default defineConfig({
  // Relative addresses: the same build is served at any path.
  base: './',
  plugins: [svelte(), compressed],
  build: { target: 'es2022', modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  server: {
    proxy: Object.fromEntries(
      [
        '/projects',
        '/searches',
        '/admin',
        '/uploads',
        '/config.json',
        '/states.json',
        '/openapi.json',
        '/health',
        '/metrics',
      ].map((path) => [path, server]),
    ),
  },
});
