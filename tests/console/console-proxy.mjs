// Serves console/dist and forwards all other requests to a server that does not contain the console yet.
import { createReadStream, existsSync } from "node:fs";
import { createServer, request as forward } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
export const CONTENT_SECURITY_POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'";

function sendFile(path, response) {
  response.writeHead(200, {
    "Content-Type": TYPES[extname(path)] ?? "application/octet-stream",
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
  });
  createReadStream(path).pipe(response);
}

function pass(request, response, target) {
  const headers = { ...request.headers, host: target.host };
  if (headers.origin) headers.origin = target.origin;
  const upstream = forward(
    {
      host: target.hostname,
      port: target.port,
      path: request.url,
      method: request.method,
      headers,
    },
    (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    },
  );
  // As without a proxy: a server that does not answer is a broken connection.
  upstream.on("error", () => response.destroy());
  response.on("close", () => upstream.destroy());
  request.pipe(upstream);
}

/** Starts the proxy on a free port; returns its URL and a function that stops it. */
export async function startProxy(dist, serverUrl, port = 0) {
  const target = new URL(serverUrl);
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://x").pathname;
    const file =
      path === "/" || path === "/index.html"
        ? "index.html"
        : path.startsWith("/assets/")
          ? normalize(path.slice(1))
          : undefined;
    const full = file === undefined ? undefined : join(dist, file);
    if (full !== undefined && full.startsWith(dist) && existsSync(full)) sendFile(full, response);
    else pass(request, response, target);
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, stop };
}
