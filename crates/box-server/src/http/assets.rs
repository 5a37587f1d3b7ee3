//! The files of the page, as `build.rs` put them into this program.

/// A file as it lies in this program.
struct Embedded {
    path: &'static str,
    mime: &'static str,
    /// With its quotes: a hash of the content.
    etag: &'static str,
    raw: &'static [u8],
    br: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// Said in the page's place where it was left out of the build (`BOX_UI=none`).
const NO_PAGE: Embedded = Embedded {
    path: "index.html",
    mime: "text/html; charset=utf-8",
    etag: "\"none\"",
    raw: b"<!doctype html><html lang=\"en\"><title>Boxes</title><p>This host was built without its page (BOX_UI=none).</p></html>",
    br: None,
    gzip: None,
};
/// Files below it have a hash of their content in their name.
const HASHED: &str = "assets/";

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asset {
    pub(crate) media_type: &'static str,
    /// With its quotes; the same for every encoding, which `Vary` tells apart.
    pub(crate) etag: &'static str,
    /// Whether what is under this name never changes.
    pub(crate) immutable: bool,
    raw: &'static [u8],
    br: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

impl Asset {
    /// The body as the client takes it best, by its `Accept-Encoding`, and the word for it. Whoever
    /// names nothing gets it as it is.
    pub(crate) fn encoded(&self, accepted: &str) -> (&'static [u8], Option<&'static str>) {
        let forms = [("br", self.br), ("gzip", self.gzip)];
        forms
            .into_iter()
            .find_map(|(name, body)| Some((body.filter(|_| takes(accepted, name))?, Some(name))))
            .unwrap_or((self.raw, None))
    }
}

/// The file at this path (`/assets/…`), if there is one.
pub(crate) fn asset(path: &str) -> Option<Asset> {
    let name = path.strip_prefix('/')?;
    let found = ASSETS.iter().find(|file| file.path == name);
    let found =
        found.or_else(|| (ASSETS.is_empty() && name == NO_PAGE.path).then_some(&NO_PAGE))?;
    Some(Asset {
        media_type: found.mime,
        etag: found.etag,
        immutable: name.starts_with(HASHED),
        raw: found.raw,
        br: found.br,
        gzip: found.gzip,
    })
}

/// Whether an `Accept-Encoding` has this coding, and not with weight zero (RFC 9110 §12.5.3).
fn takes(accepted: &str, coding: &str) -> bool {
    accepted.split(',').any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let named = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(coding));
        let refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.trim().parse::<f32>().is_ok_and(|q| q == 0.0))
        });
        named && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a phone loads before it shows anything, over the wire.
    const INITIAL_BYTES_MAX: usize = 60_000;

    fn named(ending: &str) -> Vec<&'static Embedded> {
        ASSETS
            .iter()
            .filter(|file| file.path.ends_with(ending))
            .collect()
    }

    #[test]
    fn the_page_is_in_this_program_and_what_is_hashed_is_kept_for_ever() {
        let page = asset("/index.html").unwrap();
        assert!(!page.immutable);
        let html = std::str::from_utf8(page.encoded("").0).unwrap();
        for file in named(".js")
            .iter()
            .filter(|file| file.path.contains("/index-"))
        {
            assert!(
                html.contains(file.path),
                "{} is not asked for by:\n{html}",
                file.path
            );
            assert!(asset(&format!("/{}", file.path)).unwrap().immutable);
        }
        assert!(!named(".js").is_empty());
        for nothing in [
            "/assets/index-gone.js",
            "/nothing",
            "index.html",
            "",
            "/../index.html",
        ] {
            assert!(asset(nothing).is_none(), "{nothing}");
        }
    }

    #[test]
    fn what_the_page_begins_with_is_small() {
        let page = asset("/index.html").unwrap();
        let html = std::str::from_utf8(page.encoded("").0).unwrap();
        let first: Vec<&Embedded> = ASSETS
            .iter()
            .filter(|file| html.contains(file.path))
            .collect();
        assert!(
            first.iter().any(|file| std::path::Path::new(file.path)
                .extension()
                .is_some_and(|ending| ending == "css")),
            "no style"
        );
        let bytes: usize = first
            .iter()
            .map(|file| file.br.map_or(file.raw.len(), <[u8]>::len))
            .sum();
        assert!(bytes <= INITIAL_BYTES_MAX, "{bytes} bytes");
    }

    #[test]
    fn a_client_gets_what_it_takes() {
        let script = named(".js")[0];
        let asset = asset(&format!("/{}", script.path)).unwrap();
        assert_eq!(asset.encoded("gzip, deflate, br").1, Some("br"));
        assert_eq!(asset.encoded("gzip, deflate").1, Some("gzip"));
        assert_eq!(asset.encoded("br;q=0, GZIP;q=0.5").1, Some("gzip"));
        assert_eq!(asset.encoded("identity").1, None);
        assert_eq!(asset.encoded("").0, script.raw);
        let (br, gzip) = (asset.encoded("br").0.len(), asset.encoded("gzip").0.len());
        assert!(br < gzip && gzip < script.raw.len(), "{br} {gzip}");
    }
}
