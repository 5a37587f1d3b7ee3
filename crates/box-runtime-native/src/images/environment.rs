//! What an image's own variables are to a box: defaults beneath what the host sets.

/// Folders the host puts first in `PATH`; everything else of the host's own is ordinary.
const BOXES_OWN: &str = "/opt/box/";

/// The variables of a box: the host's as they are, the image's where the host has none. `PATH` is
/// both: what the host adds to a box first, then the image's order, then what the image left out.
pub(crate) fn merged(
    host: &[(String, String)],
    image: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let mut all = host.to_vec();
    for (name, value) in image {
        match all.iter_mut().find(|(known, _)| *known == name) {
            None => all.push((name, value)),
            Some((_, known)) if name == "PATH" => *known = path(known, &value),
            Some(_) => {}
        }
    }
    all
}

fn path(host: &str, image: &str) -> String {
    let split = |path: &'_ str| -> Vec<String> { path.split(':').map(str::to_owned).collect() };
    let (first, last): (Vec<_>, Vec<_>) = split(host)
        .into_iter()
        .partition(|folder| folder.starts_with(BOXES_OWN));
    let mut folders: Vec<String> = Vec::new();
    for folder in first.into_iter().chain(split(image)).chain(last) {
        // An empty part would be the working folder, whatever lies in it.
        if folder.starts_with('/') && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_host_decides_and_the_image_fills_in() {
        let host = variables(&[
            ("HOME", "/home/agent"),
            ("PATH", "/opt/box/bin:/usr/bin:/bin"),
            ("HTTPS_PROXY", "http://127.0.0.1:3128"),
        ]);
        let image = variables(&[
            ("PATH", "/usr/local/go/bin:/bin:.::relative"),
            ("GOPATH", "/go"),
            ("HTTPS_PROXY", "http://elsewhere"),
            ("HOME", "/root"),
        ]);
        let expected = variables(&[
            ("HOME", "/home/agent"),
            ("PATH", "/opt/box/bin:/usr/local/go/bin:/bin:/usr/bin"),
            ("HTTPS_PROXY", "http://127.0.0.1:3128"),
            ("GOPATH", "/go"),
        ]);
        assert_eq!(merged(&host, image), expected);
        assert_eq!(merged(&host, Vec::new()), host);
    }
}
