import { defineConfig } from "vite";
import { compress } from "./build/compress.ts";
import { functionSignatures } from "./build/function-signatures.ts";

const server = process.env["TIDALITE_URL"] ?? "http://127.0.0.1:9000";
const paths = ["/exec", "/exp", "/imp", "/write", "/api", "/settings", "/health", "/ping", "/status"];

/** The server refuses requests whose Origin differs from Host, so the proxy presents its own origin. */
const proxy = Object.fromEntries(
  paths.map((path) => [path, { target: server, changeOrigin: true, headers: { Origin: server } }]),
);

export default defineConfig({
  plugins: [functionSignatures(), compress()],
  server: { proxy },
  preview: { proxy },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 800,
  },
});
