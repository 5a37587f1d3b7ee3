//! The programs that are tried, as data. `docs/clients.md` has a row for each.
//!
//! A script asks for `$URL`, with `$TOKEN` as its credential if there is one. It runs in `sh`, in an
//! empty folder below the home. It may end as it likes: what counts is what the origin saw.

use box_fakes::rig::Reply;

/// One program that talks with servers.
pub(super) struct Client {
    pub(super) name: &'static str,
    /// Prints its version, last word of the first line.
    pub(super) version: &'static str,
    pub(super) script: &'static str,
    pub(super) sends: Sends,
    pub(super) proxy: Proxy,
    pub(super) needs: Needs,
    pub(super) set: Set,
    /// What the origin answers; `None` is its ordinary text.
    pub(super) reply: Option<fn(&str) -> Reply>,
}

/// Which image it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    Light,
    /// Takes longer to set up than CI has time for.
    Heavy,
}

/// How it shows a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sends {
    Bearer,
    /// It has no way to send one here; that it trusts the origin is what is tried.
    Nothing,
}

/// Whether it goes by `https_proxy` and the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proxy {
    Honoured,
    Ignored,
}

/// What makes it trust the deployment's CA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// The system's list, in its place.
    Bundle,
    /// One of the variables alone.
    Variable(&'static str),
    /// A store in the home.
    Store,
}

/// A client that asks in the way most do.
const ORDINARY: Client = Client {
    name: "",
    version: "",
    script: "",
    sends: Sends::Bearer,
    proxy: Proxy::Honoured,
    needs: Needs::Bundle,
    set: Set::Light,
    reply: None,
};

const PYTHON_VERSION: &str = "python3 -c 'import sys, importlib.metadata as m; \
     print(m.version(sys.argv[1]))'";

macro_rules! python {
    ($module:literal, $code:literal) => {
        concat!(
            "python3 -c '\nimport os, asyncio, ",
            $module,
            "\nurl, token = os.environ[\"URL\"], os.environ[\"TOKEN\"]\n",
            "headers = {\"authorization\": \"Bearer \" + token} if token else {}\n",
            $code,
            "'"
        )
    };
}

macro_rules! node {
    ($version:literal, $code:literal) => {
        concat!(
            "/opt/clients/npm/node_modules/node",
            $version,
            "/bin/node -e '\nconst { URL: url, TOKEN: token } = process.env;\n",
            "const headers = token ? { authorization: `Bearer ${token}` } : {};\n",
            $code,
            "'"
        )
    };
}

macro_rules! node_version {
    ($version:literal) => {
        concat!(
            "/opt/clients/npm/node_modules/node",
            $version,
            "/bin/node --version"
        )
    };
}

macro_rules! fetch {
    ($version:literal) => {
        node!(
            $version,
            "fetch(url, { headers }).then(r => r.text()).then(console.log)"
        )
    };
}

macro_rules! https {
    ($version:literal) => {
        node!(
            $version,
            "require(\"https\").get(url, { headers }, r => r.pipe(process.stdout))"
        )
    };
}

macro_rules! websocket {
    ($version:literal) => {
        node!(
            $version,
            "const s = new WebSocket(url.replace(/^http/, \"ws\"), { headers }); s.onerror = s.onclose = () => process.exit(0)"
        )
    };
}

pub(super) const CLIENTS: &[Client] = &[
    Client {
        name: "curl",
        version: "curl --version | cut -d' ' -f2",
        script: r#"curl -sSf -m 20 ${TOKEN:+-H "authorization: Bearer $TOKEN"} "$URL""#,
        ..ORDINARY
    },
    Client {
        name: "wget",
        version: "wget --version | head -1 | cut -d' ' -f3",
        script: r#"wget -qO- -t 1 -T 20 ${TOKEN:+--header="authorization: Bearer $TOKEN"} "$URL""#,
        ..ORDINARY
    },
    Client {
        name: "git",
        version: "git --version",
        script: r#"git ${TOKEN:+-c http.extraHeader="authorization: Bearer $TOKEN"} ls-remote "$URL""#,
        reply: Some(|_| Reply::text(&format!("{}\trefs/heads/main\n", "4".repeat(40)))),
        ..ORDINARY
    },
    Client {
        name: "apt",
        version: "apt-get --version | head -1 | cut -d' ' -f2",
        script: r#"mkdir -p lists/partial cache/archives/partial; echo "deb [trusted=yes] $URL ./" >list
            apt-get update -o Dir::Etc::sourcelist="$PWD/list" -o Dir::Etc::sourceparts=/dev/null \
            -o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD/cache" -o Acquire::Retries=0"#,
        sends: Sends::Nothing,
        ..ORDINARY
    },
    Client {
        name: "gh",
        version: "gh --version | head -1 | cut -d' ' -f3",
        script: r#"GH_TOKEN=none gh api ${TOKEN:+-H "authorization: Bearer $TOKEN"} "$URL""#,
        ..ORDINARY
    },
    Client {
        name: "cargo",
        version: "/opt/clients/bin/cargo --version | cut -d' ' -f2",
        script: r#"export CARGO_HOME=$PWD CARGO_NET_RETRY=0 ${TOKEN:+CARGO_REGISTRIES_X_TOKEN="Bearer $TOKEN"}
            printf '[registries.x]\nindex = "sparse+%s/"\n[registry]\nglobal-credential-providers = ["cargo:token"]\n' "$URL" >config.toml
            /opt/clients/bin/cargo search --registry x thing"#,
        reply: Some(|url| {
            Reply::text(&format!(
                r#"{{"dl":"{url}","api":"{url}","auth-required":{},"crates":[],"meta":{{"total":0}}}}"#,
                url.contains("api.anthropic.com")
            ))
        }),
        ..ORDINARY
    },
    Client {
        name: "python urllib",
        version: "python3 --version",
        script: python!(
            "urllib.request",
            "print(urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20).read())"
        ),
        ..ORDINARY
    },
    Client {
        name: "requests",
        version: "VERSION_OF requests",
        script: python!(
            "requests",
            "print(requests.get(url, headers=headers, timeout=20).text)"
        ),
        needs: Needs::Variable("REQUESTS_CA_BUNDLE"),
        ..ORDINARY
    },
    Client {
        name: "httpx",
        version: "VERSION_OF httpx",
        script: python!(
            "httpx",
            "print(httpx.get(url, headers=headers, timeout=20).text)"
        ),
        needs: Needs::Variable("SSL_CERT_FILE"),
        ..ORDINARY
    },
    Client {
        name: "aiohttp",
        version: "VERSION_OF aiohttp",
        script: python!(
            "aiohttp",
            "async def go():\n async with aiohttp.ClientSession() as s:\n  async with s.get(url, headers=headers) as r:\n   print(await r.text())\nasyncio.run(go())"
        ),
        proxy: Proxy::Ignored,
        ..ORDINARY
    },
    Client {
        name: "urllib3",
        version: "VERSION_OF urllib3",
        script: python!(
            "urllib3",
            "print(urllib3.PoolManager(retries=False, timeout=20).request(\"GET\", url, headers=headers).data)"
        ),
        proxy: Proxy::Ignored,
        ..ORDINARY
    },
    Client {
        name: "pip",
        version: "VERSION_OF pip",
        script: r#"python3 -m pip --retries 0 --no-cache-dir index versions thing --index-url "$URL""#,
        sends: Sends::Nothing,
        reply: Some(|_| {
            let link = r#"<a href="thing-1.0-py3-none-any.whl">thing-1.0-py3-none-any.whl</a>"#;
            Reply::text(&format!("<!DOCTYPE html><html><body>{link}</body></html>"))
                .header("content-type", "text/html")
        }),
        ..ORDINARY
    },
    Client {
        name: "uv",
        version: "/opt/clients/py/bin/uv --version | cut -d' ' -f2",
        script: r#"UV_HTTP_RETRIES=0 UV_CACHE_DIR=$PWD/cache /opt/clients/py/bin/uv pip install --dry-run --target t thing --index-url "$URL""#,
        sends: Sends::Nothing,
        needs: Needs::Variable("SSL_CERT_FILE"),
        ..ORDINARY
    },
    Client {
        name: "node 22 fetch",
        version: node_version!("22"),
        script: fetch!("22"),
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        ..ORDINARY
    },
    Client {
        name: "node 22 https",
        version: node_version!("22"),
        script: https!("22"),
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        ..ORDINARY
    },
    Client {
        name: "node 22 WebSocket",
        version: node_version!("22"),
        script: websocket!("22"),
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        ..ORDINARY
    },
    Client {
        name: "npm",
        version: "npm --version",
        script: r#"printf '{}' >package.json; printf '//%s/:_authToken=%s\n' "${URL#https://}" "$TOKEN" >.npmrc
            npm view thing --registry "$URL" --fetch-retries=0 --cache="$PWD/cache""#,
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        reply: Some(package),
        ..ORDINARY
    },
    Client {
        name: "pnpm",
        version: "pnpm --version",
        script: r#"printf '{}' >package.json; printf 'registry=%s/\n//%s/:_authToken=%s\n' "$URL" "${URL#https://}" "$TOKEN" >.npmrc
            cp .npmrc ~/.npmrc; pnpm view thing --config.fetch-retries=0; rm ~/.npmrc"#,
        reply: Some(package),
        ..ORDINARY
    },
    Client {
        name: "yarn",
        version: "yarn --version",
        script: r#"yarn info thing --registry "$URL" --cache-folder "$PWD/cache" --non-interactive"#,
        sends: Sends::Nothing,
        needs: Needs::Variable("npm_config_cafile"),
        reply: Some(package),
        ..ORDINARY
    },
    Client {
        name: "node 20 fetch",
        version: node_version!("20"),
        script: fetch!("20"),
        proxy: Proxy::Ignored,
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        set: Set::Heavy,
        ..ORDINARY
    },
    Client {
        name: "node 20 https",
        version: node_version!("20"),
        script: https!("20"),
        proxy: Proxy::Ignored,
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        set: Set::Heavy,
        ..ORDINARY
    },
    Client {
        name: "node 24 fetch",
        version: node_version!("24"),
        script: fetch!("24"),
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        set: Set::Heavy,
        ..ORDINARY
    },
    Client {
        name: "node 24 https",
        version: node_version!("24"),
        script: https!("24"),
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        set: Set::Heavy,
        ..ORDINARY
    },
    Client {
        name: "node 24 WebSocket",
        version: node_version!("24"),
        script: websocket!("24"),
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        set: Set::Heavy,
        ..ORDINARY
    },
    Client {
        name: "node 26 fetch",
        version: node_version!("26"),
        script: fetch!("26"),
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        set: Set::Heavy,
        ..ORDINARY
    },
    Client {
        name: "node 26 https",
        version: node_version!("26"),
        script: https!("26"),
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        set: Set::Heavy,
        ..ORDINARY
    },
    Client {
        name: "node 26 WebSocket",
        version: node_version!("26"),
        script: websocket!("26"),
        needs: Needs::Variable("NODE_EXTRA_CA_CERTS"),
        set: Set::Heavy,
        ..ORDINARY
    },
    Client {
        name: "go",
        version: "/opt/clients/py/go/bin/go version | cut -d' ' -f3",
        script: r#"cat >auth <<'END'
#!/bin/sh
printf '%s\n\nauthorization: Bearer %s\n\n' "$URL" "$TOKEN"
END
            chmod +x auth
            export GOPATH=$PWD GOCACHE=$PWD/c GOROOT=/opt/clients/py/go GOTOOLCHAIN=local GOFLAGS=-mod=mod GONOSUMDB='*' GOPROXY=$URL
            ${TOKEN:+export GOAUTH="$PWD/auth"}; printf 'module x\n' >go.mod
            "$GOROOT/bin/go" list -m -versions example.com/thing"#,
        reply: Some(|_| Reply::text("v1.0.0\n")),
        set: Set::Heavy,
        ..ORDINARY
    },
    Client {
        name: "java HttpClient",
        version: "java --version | head -1 | cut -d' ' -f2",
        script: r#"cat >Get.java <<'END'
import java.net.URI; import java.net.http.*;
class Get { public static void main(String[] a) throws Exception {
  var request = HttpRequest.newBuilder(URI.create(System.getenv("URL")));
  var token = System.getenv("TOKEN");
  if (!token.isEmpty()) request.header("authorization", "Bearer " + token);
  System.out.println(HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofString()).body());
} }
END
            java Get.java"#,
        needs: Needs::Variable("JAVA_TOOL_OPTIONS"),
        set: Set::Heavy,
        ..ORDINARY
    },
    Client {
        name: "chromium",
        version: "chromium-headless-shell --version 2>/dev/null | cut -d' ' -f2",
        script: r#"timeout 40 chromium-headless-shell --no-sandbox --disable-gpu --user-data-dir="$PWD" --dump-dom "$URL""#,
        sends: Sends::Nothing,
        needs: Needs::Store,
        set: Set::Heavy,
        ..ORDINARY
    },
];

/// The version of a module of Python.
pub(super) fn version_script(client: &Client) -> String {
    match client.version.strip_prefix("VERSION_OF ") {
        Some(module) => format!("{PYTHON_VERSION} {module}"),
        None => client.version.to_owned(),
    }
}

/// A package of npm's registry with one version.
fn package(url: &str) -> Reply {
    let version = format!(
        r#"{{"name":"thing","version":"1.0.0","dist":{{"tarball":"{url}/thing.tgz","shasum":"{}"}}}}"#,
        "0".repeat(40)
    );
    let text = format!(
        r#"{{"name":"thing","dist-tags":{{"latest":"1.0.0"}},"versions":{{"1.0.0":{version}}},"time":{{}}}}"#
    );
    Reply::text(&text).header("content-type", "application/json")
}
