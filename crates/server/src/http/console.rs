//! The web console: the files of `console/dist`, embedded in compressed form by the build script.

use super::pages;
use super::response::{Body, response};
use flate2::read::GzDecoder;
use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use std::io::Read;

/// A file of the console.
struct File {
    /// Relative to the console's folder, such as `assets/index-8f3c.js`.
    path: &'static str,
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// Sent with each file. Scripts come from this server only; the editor sets styles of elements.
const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; worker-src 'self' blob:; \
         object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("vary", "accept-encoding"),
];

/// Returns true if the path is the page of the console or one of its files.
pub fn is_console(path: &str) -> bool {
    name(path).is_some()
}

/// Responds with a file of the console, or with the plain page if the server was built without the console.
pub fn serve(path: &str, headers: &HeaderMap) -> Response<Body> {
    let name = name(path).unwrap_or_default();
    match FILES.iter().find(|file| file.path == name) {
        Some(file) => answer(file, headers),
        None if name == "index.html" => pages::start(),
        None => pages::not_found(path),
    }
}

/// Maps a path of a request to the name of a file.
fn name(path: &str) -> Option<&str> {
    match path {
        "/" | "/index.html" => Some("index.html"),
        path => path.strip_prefix('/').filter(|name| name.starts_with("assets/")),
    }
}

fn answer(file: &File, headers: &HeaderMap) -> Response<Body> {
    let is_compressed = accepts_gzip(headers);
    let mut bytes = Vec::new();
    if !is_compressed && GzDecoder::new(file.gzip).read_to_end(&mut bytes).is_err() {
        return pages::not_found(file.path);
    }
    let content_type = content_type(file.path);
    let mut answer = match is_compressed {
        true => response(StatusCode::OK, content_type, file.gzip),
        false => response(StatusCode::OK, content_type, bytes),
    };
    let all = answer.headers_mut();
    if is_compressed {
        all.insert("content-encoding", HeaderValue::from_static("gzip"));
    }
    for (name, value) in HEADERS {
        all.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    // The names of assets contain a hash of their content.
    let caching = if file.path.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    all.insert("cache-control", HeaderValue::from_static(caching));
    answer
}

/// Returns true if `Accept-Encoding` lists gzip with a weight other than 0.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight != Some(0.0)
    })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json" | "webmanifest") => "application/json; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_console() {
        for path in ["/", "/index.html", "/assets/a.js", "/assets/../x"] {
            assert!(is_console(path), "{path}");
        }
        for path in ["/exec", "/assetsx", "//assets/a.js", "/x/assets/a.js"] {
            assert!(!is_console(path), "{path}");
        }
        assert_eq!(serve("/assets/../x", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn gzip_is_negotiated() {
        let accepts = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            accepts_gzip(&headers)
        };
        assert!(accepts("gzip") && accepts("br, GZIP;q=0.5") && accepts("deflate,gzip;q=1"));
        assert!(!accepts("br") && !accepts("gzip;q=0") && !accepts("") && !accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn files_are_compressed_with_a_known_type() {
        for file in FILES {
            let mut bytes = Vec::new();
            GzDecoder::new(file.gzip).read_to_end(&mut bytes).expect("a gzip stream");
            assert!(!bytes.is_empty(), "{}", file.path);
            assert_ne!(content_type(file.path), "application/octet-stream", "{}", file.path);
        }
    }
}
