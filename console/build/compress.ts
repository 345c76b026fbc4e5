import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

/** Writes a gzip-compressed copy beside each file of the output: the server embeds these copies. */
export function compress(): Plugin {
  let output = "";
  return {
    name: "compress",
    apply: "build",
    configResolved(config) {
      output = join(config.root, config.build.outDir);
    },
    closeBundle() {
      for (const name of readdirSync(output, { recursive: true, encoding: "utf8" })) {
        const path = join(output, name);
        if (statSync(path).isFile() && !name.endsWith(".gz")) {
          writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: constants.Z_BEST_COMPRESSION }));
        }
      }
    },
  };
}
