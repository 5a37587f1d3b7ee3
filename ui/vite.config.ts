// How the page is built: React's API is answered by preact, styles are Tailwind's.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import tailwindcss from "@tailwindcss/vite";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".webmanifest": "application/manifest+json",
};
/** Smaller files do not get smaller. */
const PACKED_BYTES_MIN = 256;

/** Compresses what was built and lists it in `assets.tsv`, from which the host makes its table:
 * path, media type, ETag, `packed` or `bare`. */
function assets(): Plugin {
  return {
    name: "assets",
    apply: "build",
    closeBundle() {
      const dist = join(import.meta.dirname, "dist");
      const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      const lines = files.map((entry) => {
        const file = join(entry.parentPath, entry.name);
        const bytes = readFileSync(file);
        const type = TYPES[extname(file)];
        if (!type) throw new Error(`no media type for ${file}`);
        const packed = type !== "image/png" && bytes.length > PACKED_BYTES_MIN;
        if (packed) {
          writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }));
          writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
        }
        const etag = createHash("sha256").update(bytes).digest("hex").slice(0, 32);
        return [relative(dist, file), type, etag, packed ? "packed" : "bare"].join("\t");
      });
      writeFileSync(join(dist, "assets.tsv"), `${lines.sort().join("\n")}\n`);
    },
  };
}

export default defineConfig({
  plugins: [tailwindcss(), assets()],
  resolve: {
    alias: {
      "react/jsx-runtime": "preact/jsx-runtime",
      "react/jsx-dev-runtime": "preact/jsx-runtime",
      "react-dom": "preact/compat",
      react: "preact/compat",
    },
    dedupe: ["preact"],
  },
  build: {
    target: "es2022",
    // Nothing inline: the page's policy allows its own files only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: {
      "/api": { target: "http://127.0.0.1:3000", ws: true },
      "/healthz": "http://127.0.0.1:3000",
    },
  },
  test: {
    environment: "jsdom",
    include: ["test/**/*.test.{ts,tsx}"],
    server: { deps: { inline: ["virtua", "@testing-library/preact"] } },
  },
});
