//! Which request goes where.

use super::browser::{self, Caller, Head};
use super::console;
use super::params::Params;
use super::response::Body;
use super::state::HttpState;
use super::{arrow, imports, influx, pages, query, validate, write};
use crate::counters::add;
use crate::logging::{LineThrottle, cut};
use futures::FutureExt;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONNECTION, HeaderValue, UPGRADE};
use hyper::{HeaderMap, Method, Request, Response};
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tidalite::types::NAME_BYTES_MAX;

static REFUSED: LineThrottle = LineThrottle::new();

/// Handles a request; errors and panics become responses, too.
///
/// `full` is the connection limit that is reached: then only requests for the health of the server are served.
pub async fn answer(
    request: Request<Incoming>,
    peer: SocketAddr,
    full: Option<&'static str>,
    shared: &Arc<HttpState>,
) -> Response<Body> {
    let handled = AssertUnwindSafe(dispatch(request, peer, full, shared)).catch_unwind().await;
    let mut response = handled.unwrap_or_else(|_| pages::panicked());
    // A page of another origin can neither embed a response nor run a response as a script.
    let headers = response.headers_mut();
    headers.insert("X-Content-Type-Options", HeaderValue::from_static("nosniff"));
    headers.insert("Cross-Origin-Resource-Policy", HeaderValue::from_static("same-origin"));
    if full.is_some() {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let counter = match response.status().as_u16() {
        ..400 => &shared.counters.http_ok,
        400..500 => &shared.counters.http_client_errors,
        _ => &shared.counters.http_server_errors,
    };
    add(counter, 1);
    response
}

async fn dispatch(
    mut request: Request<Incoming>,
    peer: SocketAddr,
    full: Option<&'static str>,
    shared: &Arc<HttpState>,
) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let reads = method == Method::GET || method == Method::HEAD;
    // Whether the server lives is no secret: load balancers ask without credentials, and QuestDB's clients for the
    // settings.
    match path.as_str() {
        "/ping" if reads => return pages::ping(&shared.health.report()),
        "/settings" if reads => return pages::settings(NAME_BYTES_MAX),
        "/health" if reads => return influx::health(&shared.health.report()),
        "/ready" if reads => return influx::ready(&shared.health.report()),
        "/health/live" | "/health/ready" | "/health/writable" | "/status" if reads => {
            return pages::state(&path, &shared.health);
        }
        "/ping" | "/settings" | "/health" | "/ready" | "/health/live" | "/health/ready" | "/health/writable"
        | "/status" => {
            return pages::method_not_allowed(method.as_str(), "GET, HEAD");
        }
        _ => {}
    }
    if let Some(setting) = full {
        return pages::unavailable(format!("too many connections: {setting} is reached\r\n"));
    }
    if asks_for_websocket(request.headers()) {
        return pages::no_websocket();
    }
    // The files of the console contain no data; its login form is shown to everybody.
    if reads && console::is_console(&path) {
        return console::serve(&path, request.headers());
    }
    match of_caller(&request, shared) {
        Ok(caller) => request.extensions_mut().insert(caller),
        Err(reason) => {
            add(&shared.counters.http_pages_refused, 1);
            if let Some(left_out) = REFUSED.pass() {
                tracing::warn!(%peer, path = cut(&path), reason, left_out, "refused a request of a page in a browser");
            }
            return pages::forbidden(format!("{reason}\r\n"));
        }
    };
    if let Some(refused) = refused_login(&request, peer, shared) {
        return refused;
    }
    let writes = matches!(path.as_str(), "/write" | "/api/v2/write" | "/api/v3/write_lp" | "/write/arrow" | "/imp");
    if writes && shared.database.is_read_only() {
        return pages::read_only();
    }
    match path.as_str() {
        "/write" | "/api/v2/write" if method == Method::POST => write::answer(request, shared).await,
        "/api/v3/write_lp" if method == Method::POST => write::answer_v3(request, shared).await,
        "/write/arrow" if method == Method::POST => arrow::write(request, shared).await,
        "/write" | "/api/v2/write" | "/api/v3/write_lp" | "/write/arrow" => {
            pages::method_not_allowed(method.as_str(), "POST")
        }
        "/query" if reads || method == Method::POST => influx::query(request, shared).await,
        "/query" => pages::method_not_allowed(method.as_str(), "GET, POST"),
        "/api/v2/buckets" if reads => influx::buckets(request.uri().query().unwrap_or_default()),
        "/api/v2/orgs" if reads => influx::orgs(request.uri().query().unwrap_or_default()),
        "/imp" if method == Method::POST => imports::answer(request, shared).await,
        "/imp" => pages::method_not_allowed(method.as_str(), "POST"),
        "/exec" if reads || method == Method::POST => query::exec(request, peer, shared).await,
        "/exp" if reads || method == Method::POST => query::exp(request, peer, shared).await,
        "/exec" | "/exp" => pages::method_not_allowed(method.as_str(), "GET, POST"),
        "/api/v1/sql/validate" if reads || method == Method::POST => validate::answer(request, shared).await,
        "/api/v1/sql/validate" => pages::method_not_allowed(method.as_str(), "GET, POST"),
        "/chk" if reads => query::chk(&request, shared),
        "/chk" | "/" | "/index.html" => pages::method_not_allowed(method.as_str(), "GET, HEAD"),
        path if path.starts_with("/api/") => influx::not_found(path),
        _ => pages::not_found(&path),
    }
}

fn of_caller(request: &Request<Incoming>, shared: &HttpState) -> Result<Caller, String> {
    let head = Head {
        method: request.method(),
        headers: request.headers(),
        authority: request.uri().authority().map(|authority| authority.as_str()),
        is_encrypted: shared.tls.is_some(),
        has_credentials: shared.auth.has_credentials(),
    };
    browser::check(head, &shared.allowed_hosts)
}

/// Checks the credentials, unless the address or user must wait after failed logins; `None` permits the request.
fn refused_login(request: &Request<Incoming>, peer: SocketAddr, shared: &HttpState) -> Option<Response<Body>> {
    if !shared.auth.has_credentials() {
        return None;
    }
    let user = login_name(request);
    let Some(user) = user else { return (!is_allowed(request, shared)).then(pages::unauthorized) };
    if let Err(wait) = shared.logins.may_try(peer.ip(), &user) {
        return Some(pages::too_many_logins(wait));
    }
    if is_allowed(request, shared) {
        shared.logins.succeeded(peer.ip());
        return None;
    }
    shared.logins.failed("HTTP", peer.ip(), &user);
    Some(pages::unauthorized())
}

/// Returns the user name of the credentials, empty for a token; `None` without credentials.
fn login_name(request: &Request<Incoming>) -> Option<String> {
    if let Some(header) = request.headers().get(AUTHORIZATION) {
        return Some(crate::auth::user_of(header.as_bytes()).unwrap_or_default());
    }
    let params = Params::parse(request.uri().query().unwrap_or_default()).ok()?;
    params.get("u").filter(|_| params.get("p").is_some()).map(str::to_owned)
}

/// Returns true if the `Authorization` header, or `u` and `p` on the paths of InfluxDB 1, are valid.
fn is_allowed(request: &Request<Incoming>, shared: &HttpState) -> bool {
    if shared.auth.allows(request.headers().get(AUTHORIZATION).map(|h| h.as_bytes())) {
        return true;
    }
    if !matches!(request.uri().path(), "/write" | "/query") {
        return false;
    }
    let params = Params::parse(request.uri().query().unwrap_or_default());
    params.is_ok_and(|params| match (params.get("u"), params.get("p")) {
        (Some(user), Some(password)) => shared.auth.allows_user(user, password),
        _ => false,
    })
}

fn asks_for_websocket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}
