//! One plain HTTP request by name, and in words what came of it.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::process::ExitCode;
use std::time::Duration;

const PORT: u16 = 80;
const WAIT: Duration = Duration::from_secs(3);
const ANSWER_BYTES_MAX: u64 = 4 << 10;
const LINES_SHOWN: usize = 3;

/// Prints what happened; succeeds only if the host answered with success.
pub(crate) fn run(host: &str) -> ExitCode {
    let (text, code) = match reach(host) {
        Ok(answer) => {
            let success = answer
                .split(' ')
                .nth(1)
                .is_some_and(|status| status.starts_with('2'));
            (
                answer,
                if success {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                },
            )
        }
        Err(why) => (why, ExitCode::FAILURE),
    };
    // If nobody reads it, nobody misses it.
    drop(writeln!(std::io::stdout(), "{text}"));
    code
}

fn reach(host: &str) -> Result<String, String> {
    let mut addresses = (host, PORT)
        .to_socket_addrs()
        .map_err(|error| format!("the name `{host}` does not resolve: {error}"))?;
    let address = addresses
        .next()
        .ok_or(format!("the name `{host}` has no address"))?;
    let failed = |error: std::io::Error| format!("no answer from {address} for `{host}`: {error}");
    let mut stream = TcpStream::connect_timeout(&address, WAIT).map_err(failed)?;
    stream.set_read_timeout(Some(WAIT)).map_err(failed)?;
    stream.set_write_timeout(Some(WAIT)).map_err(failed)?;
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
    if answer.is_empty() {
        let why = read
            .err()
            .map_or_else(|| "it closed the connection".to_owned(), |e| e.to_string());
        return Err(format!("no answer from {address} for `{host}`: {why}"));
    }
    Ok(shorten(&String::from_utf8_lossy(&answer)))
}

/// The status line, and the first lines of the body.
fn shorten(answer: &str) -> String {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.lines().next().unwrap_or_default();
    let body = body.lines().filter(|line| !line.trim().is_empty());
    [status]
        .into_iter()
        .chain(body.take(LINES_SHOWN))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn an_answer_is_told_by_its_status_and_its_first_lines() {
        let answer = "HTTP/1.1 451 Unavailable\r\nServer: x\r\n\r\nnot\n\non\nthis\nlist\n";
        assert_eq!(shorten(answer), "HTTP/1.1 451 Unavailable\nnot\non\nthis");
        assert_eq!(shorten("garbage"), "garbage");
    }
}
