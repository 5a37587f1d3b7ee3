//! apt: its lists of sources.

use super::{Machine, entries, read};

pub(super) fn urls(machine: &Machine) -> Vec<String> {
    let mut urls: Vec<String> = machine
        .texts(&["etc/apt/sources.list"], &[])
        .iter()
        .flat_map(|text| lines(text))
        .collect();
    for path in entries(&machine.root.join("etc/apt/sources.list.d")) {
        let Some(text) = read(&path) else { continue };
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("list") => urls.extend(lines(&text)),
            Some("sources") => urls.extend(stanzas(&text)),
            _ => {}
        }
    }
    urls
}

/// `deb [options] URI suite …` (sources.list(5)).
fn lines(text: &str) -> Vec<String> {
    let entries = text
        .lines()
        .filter(|line| line.trim_start().starts_with("deb"));
    let urls = entries.filter_map(|line| line.split_whitespace().find(|word| word.contains("://")));
    urls.map(str::to_owned).collect()
}

/// `URIs: URI …` of stanzas that are not `Enabled: no`.
fn stanzas(text: &str) -> Vec<String> {
    let mut urls = Vec::new();
    for stanza in text.split("\n\n") {
        let field = |name: &str| {
            stanza
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find_map(|(key, value)| {
                    key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
                })
        };
        if field("Enabled").is_some_and(|value| matches!(value, "no" | "false" | "0")) {
            continue;
        }
        let words = field("URIs").into_iter().flat_map(str::split_whitespace);
        urls.extend(words.map(str::to_owned));
    }
    urls
}
