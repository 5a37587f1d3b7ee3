//! A git server: `git http-backend` (its manual page; RFC 3875) behind a door that takes one token.

use super::internet::Internet;
use super::site::whole;
use super::web::AnswerBody;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use std::path::PathBuf;
use std::process::Stdio;
use std::rc::Rc;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

const BODY_BYTES_MAX: usize = 256 << 20;

/// Bare repositories below a folder, served as `https://<name>/<owner>/<repository>.git`.
#[derive(Debug, Clone)]
pub(crate) struct Forge {
    pub(crate) folder: PathBuf,
    pub(crate) token: String,
}

pub(crate) async fn answer(
    internet: Rc<Internet>,
    number: usize,
    forge: Forge,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let Ok(body) = body.map(http_body_util::Collected::to_bytes) else {
        return whole(StatusCode::BAD_REQUEST, Vec::new());
    };
    internet.with(|world| world.body_read(number, body.len() as u64));
    if !is_known(&parts.headers, &forge.token) {
        let mut response = whole(StatusCode::UNAUTHORIZED, b"who are you\n".to_vec());
        let basic = HeaderValue::from_static("Basic realm=\"forge\"");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, basic);
        return response;
    }
    match run(&forge, &parts, &body).await {
        Ok(output) => of_script(&output),
        Err(error) => whole(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{error}\n").into_bytes(),
        ),
    }
}

/// `Bearer <token>`, `token <token>`, or the password of `Basic`.
fn is_known(headers: &HeaderMap, token: &str) -> bool {
    let value = headers.get(header::AUTHORIZATION);
    let Some((scheme, rest)) = value
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
    else {
        return false;
    };
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" | "token" => rest == token,
        "basic" => {
            let pair = STANDARD.decode(rest).unwrap_or_default();
            let pair = String::from_utf8_lossy(&pair).into_owned();
            pair.split_once(':')
                .is_some_and(|(_, password)| password == token)
        }
        _ => false,
    }
}

async fn run(
    forge: &Forge,
    parts: &http::request::Parts,
    body: &Bytes,
) -> std::io::Result<Vec<u8>> {
    let text = |name: &HeaderName| {
        let value = parts.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let mut backend = Command::new("git");
    backend
        .arg("http-backend")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        // The folder may be another user's.
        .env("GIT_CONFIG_COUNT", "2")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("GIT_CONFIG_KEY_1", "receive.advertisePushOptions")
        .env("GIT_CONFIG_VALUE_1", "true")
        .env("GIT_PROJECT_ROOT", &forge.folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "rig")
        .env("REQUEST_METHOD", parts.method.as_str())
        .env("PATH_INFO", parts.uri.path())
        .env("QUERY_STRING", parts.uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", text(&header::CONTENT_TYPE))
        .env("HTTP_CONTENT_ENCODING", text(&header::CONTENT_ENCODING))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env(
            "GIT_PROTOCOL",
            text(&HeaderName::from_static("git-protocol")),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut backend = backend.spawn()?;
    let mut input = backend.stdin.take();
    let feed = async {
        if let Some(input) = &mut input {
            // It need not read all of it.
            let _written = input.write_all(body).await;
        }
        drop(input);
    };
    let (output, ()) = tokio::join!(backend.wait_with_output(), feed);
    Ok(output?.stdout)
}

/// Headers, an empty line, the body (RFC 3875 §6).
fn of_script(output: &[u8]) -> Response<AnswerBody> {
    let end = output.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end else {
        return whole(StatusCode::INTERNAL_SERVER_ERROR, b"no headers\n".to_vec());
    };
    let (head, body) = (&output[..end], &output[end + 4..]);
    let mut response = whole(StatusCode::OK, body.to_vec());
    for line in String::from_utf8_lossy(head).lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("status") {
            let code = value.split(' ').next().and_then(|code| code.parse().ok());
            *response.status_mut() = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            continue;
        }
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}
