//! The address of a repository's origin as a box may know it: without an account, and https.

/// What a box is told; none for addresses that lead to this machine.
pub(super) fn for_a_box(url: &str) -> Option<String> {
    let plain = !url.chars().any(|c| c.is_control() || c.is_whitespace());
    if !plain || url.is_empty() || url.starts_with('-') {
        return None;
    }
    if let Some((scheme, rest)) = url.split_once("://") {
        let rest = without_account(rest);
        return match scheme {
            "http" | "https" => Some(format!("{scheme}://{rest}")),
            // A box has no other way out (D25).
            "ssh" | "git" | "git+ssh" | "ssh+git" => Some(format!("https://{}", no_port(&rest)?)),
            _ => None,
        };
    }
    // `git@host:path`; a path of this machine has its `/` first.
    let (host, path) = url.split_once(':')?;
    if host.contains('/') || path.is_empty() {
        return None;
    }
    let host = without_account(host);
    Some(format!("https://{host}/{}", path.trim_start_matches('/')))
}

/// Everything up to the last `@` of the host part is who, and perhaps a password or a token.
fn without_account(rest: &str) -> String {
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let host = authority.rsplit('@').next().unwrap_or(authority);
    // A token may also hide in a query.
    let path = path.split(['?', '#']).next().unwrap_or_default();
    format!("{host}{path}")
}

fn no_port(rest: &str) -> Option<String> {
    let (host, path) = rest.split_once('/')?;
    let host = host.split(':').next()?;
    Some(format!("{host}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::for_a_box;

    #[test]
    fn accounts_go_and_addresses_become_ones_a_box_can_reach() {
        let rows = [
            (
                "https://forge.example/a/b.git",
                "https://forge.example/a/b.git",
            ),
            (
                "https://me:s3cret@forge.example/a/b",
                "https://forge.example/a/b",
            ),
            (
                "https://t0ken@forge.example:8443/a",
                "https://forge.example:8443/a",
            ),
            ("https://a@b@forge.example/a", "https://forge.example/a"),
            ("https://forge.example/a?token=x", "https://forge.example/a"),
            ("git@forge.example:a/b.git", "https://forge.example/a/b.git"),
            (
                "ssh://git@forge.example:2222/a/b",
                "https://forge.example/a/b",
            ),
        ];
        for (url, wanted) in rows {
            assert_eq!(for_a_box(url).as_deref(), Some(wanted), "{url}");
        }
        for url in [
            "",
            "/srv/git/a.git",
            "../a",
            "file:///srv/a",
            "ext::sh -c x",
            "-u",
            "a\nb:c",
        ] {
            assert_eq!(for_a_box(url), None, "{url:?}");
        }
    }
}
