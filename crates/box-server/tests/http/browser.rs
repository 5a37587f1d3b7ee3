//! A browser as far as the door can tell: requests with a cookie, and `WebSocket`s.

use crate::fake_runtime::FakeRuntime;
use crate::host::{PATIENCE, TestHost};
use box_api::control::{Outcome, Request};
use box_api::page::{ClientFrame, PageAsk, ServerFrame, Topic};
use box_server::Place;
use box_server::settings::page::Listen;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A host with a page.
pub(crate) struct Site {
    pub(crate) host: TestHost,
    pub(crate) address: SocketAddr,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn slug(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }
}

/// One browser.
#[derive(Debug, Clone)]
pub(crate) struct Browser {
    pub(crate) address: SocketAddr,
    /// As its `Cookie` header has it.
    pub(crate) cookie: Option<String>,
    pub(crate) proof: Option<String>,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        // The machine's keyring is nothing for tests.
        let config = "[credentials]\nseal = \"memory\"\n";
        std::fs::write(folder.path().join("config.toml"), config).unwrap();
        let page = Listen::At(SocketAddr::from(([127, 0, 0, 1], 0)));
        let host = TestHost::start_with(folder, FakeRuntime::default(), page).await;
        let Place::At(url) = &host.place else {
            panic!("no page: {:?}", host.place);
        };
        let address = url.strip_prefix("http://").unwrap().parse().unwrap();
        Self { host, address }
    }

    pub(crate) fn stranger(&self) -> Browser {
        Browser {
            address: self.address,
            cookie: None,
            proof: None,
        }
    }

    /// The code of a new link.
    pub(crate) async fn code(&self) -> String {
        let outcome = self.host.ask(Request::Page(PageAsk::Link)).await;
        let Ok(Outcome::PageLink(link)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(link.url, format!("http://{}", self.address));
        link.code
    }

    /// A browser that was paired.
    pub(crate) async fn browser(&self) -> Browser {
        let mut browser = self.stranger();
        let code = self.code().await;
        let paired = browser.pair(&code).await;
        assert_eq!(paired.status, StatusCode::OK, "{paired:?}");
        browser.cookie = Some(cookie(&paired));
        browser.proof = paired.json()["proof"].as_str().map(str::to_owned);
        browser
    }
}

/// The cookie that was set, without what is said about it.
pub(crate) fn cookie(paired: &Got) -> String {
    let set = paired.headers["set-cookie"].to_str().unwrap();
    set.split(';').next().unwrap().to_owned()
}

impl Browser {
    pub(crate) fn own_headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("host", self.address.to_string()),
            ("origin", format!("http://{}", self.address)),
            ("user-agent", "Test/1.0".to_owned()),
        ];
        headers.extend(self.cookie.iter().map(|cookie| ("cookie", cookie.clone())));
        headers.extend(
            self.proof
                .iter()
                .map(|proof| ("x-box-proof", proof.clone())),
        );
        headers
    }

    pub(crate) async fn pair(&self, code: &str) -> Got {
        let body = serde_json::json!({ "code": code });
        self.post("/api/pair", &body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.send(Method::GET, path, self.own_headers(), Vec::new())
            .await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Got {
        let mut headers = self.own_headers();
        headers.push(("content-type", "application/json".to_owned()));
        self.send(Method::POST, path, headers, body.to_string().into_bytes())
            .await
    }

    /// A request with exactly these headers, on a connection of its own.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    ) -> Got {
        let sending = async {
            let stream = TokioIo::new(connect(self.address).await);
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(stream).await.unwrap();
            let connection = tokio::spawn(connection);
            let mut request = hyper::Request::builder().method(method).uri(path);
            for (name, value) in headers {
                request = request.header(name, value);
            }
            let request = request.body(Full::new(Bytes::from(body))).unwrap();
            let answer = sender.send_request(request).await.unwrap();
            let (head, body) = answer.into_parts();
            let body = body.collect().await.unwrap().to_bytes().to_vec();
            drop(sender);
            connection.abort();
            Got {
                status: head.status,
                headers: head.headers,
                body,
            }
        };
        timeout(PATIENCE, sending).await.unwrap()
    }

    /// A socket, greeted.
    pub(crate) async fn socket(&self) -> Socket {
        let mut socket = Socket::open(self.address, &self.own_headers())
            .await
            .unwrap();
        let hello = socket.frame().await.unwrap();
        assert!(matches!(hello, ServerFrame::Hello { .. }), "{hello:?}");
        socket
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a browser of the test connects to the host of the test"
)]
pub(crate) async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

/// A WebSocket of a browser.
pub(crate) struct Socket {
    stream: TcpStream,
    inbox: Vec<u8>,
}

impl Socket {
    /// # Errors
    /// The status that came instead.
    pub(crate) async fn open(
        address: SocketAddr,
        headers: &[(&'static str, String)],
    ) -> Result<Self, u16> {
        let mut stream = connect(address).await;
        let mut head = "GET /ws HTTP/1.1\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
            sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            .to_owned();
        head.extend(
            headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}\r\n")),
        );
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut inbox = Vec::new();
        let end = loop {
            if let Some(at) = inbox.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let read = timeout(PATIENCE, stream.read_buf(&mut inbox))
                .await
                .unwrap();
            assert!(read.unwrap() > 0, "closed in the handshake");
        };
        let head = String::from_utf8(inbox.drain(..end).collect()).unwrap();
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        if status != 101 {
            return Err(status);
        }
        assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        Ok(Self { stream, inbox })
    }

    pub(crate) async fn say(&mut self, frame: &ClientFrame) {
        self.say_text(&serde_json::to_string(frame).unwrap()).await;
    }

    pub(crate) async fn say_text(&mut self, text: &str) {
        let mut frame = vec![0x81];
        match u8::try_from(text.len()) {
            Ok(short) if short < 126 => frame.push(0x80 | short),
            _ => {
                frame.push(0x80 | 0x7e);
                frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
            }
        }
        let mask = [7, 1, 9, 4];
        frame.extend(mask);
        frame.extend(
            text.bytes()
                .zip(mask.into_iter().cycle())
                .map(|(byte, mask)| byte ^ mask),
        );
        self.stream.write_all(&frame).await.unwrap();
    }

    pub(crate) async fn subscribe(&mut self, sub: u32, topic: Topic) {
        self.say(&ClientFrame::Sub { sub, topic }).await;
    }

    /// The next frame; `None` when the host closed.
    pub(crate) async fn frame(&mut self) -> Option<ServerFrame> {
        loop {
            if let Some((opcode, body)) = self.take() {
                match opcode {
                    1 => return Some(serde_json::from_slice(&body).unwrap()),
                    8 => return None,
                    _ => continue,
                }
            }
            let read = timeout(PATIENCE, self.stream.read_buf(&mut self.inbox)).await;
            if !matches!(read.unwrap(), Ok(count) if count > 0) {
                return None;
            }
        }
    }

    fn take(&mut self) -> Option<(u8, Vec<u8>)> {
        let (first, length) = (*self.inbox.first()?, *self.inbox.get(1)?);
        let (head, bytes) = match length {
            126 => (
                4,
                u64::from(u16::from_be_bytes(
                    self.inbox.get(2..4)?.try_into().unwrap(),
                )),
            ),
            127 => (
                10,
                u64::from_be_bytes(self.inbox.get(2..10)?.try_into().unwrap()),
            ),
            short => (2, u64::from(short)),
        };
        let end = head + usize::try_from(bytes).unwrap();
        let body = self.inbox.get(head..end)?.to_vec();
        self.inbox.drain(..end);
        Some((first & 0x0F, body))
    }
}
